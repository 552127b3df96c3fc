#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every command has a manual page that names its options and no others, the
variables are all in vramscope(1), the references lead somewhere, and the pages
format without a complaint: man.py --vramscope PROGRAM."""

import argparse
import glob
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGES = os.path.join(ROOT, "docs", "man")
OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]+|-[a-zA-Z])(?![\w-])")
FORMAT = ["groff", "-man", "-Tutf8", "-ww", "-z"]

faults = []


def complain(text):
    faults.append(text)


def page_text(name):
    """A page without its markup."""
    path = os.path.join(PAGES, name + ".1")
    if not os.path.exists(path):
        complain(f"{name}: no page {path}")
        return ""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    return re.sub(r"\\f[BRI]", "", text).replace("\\-", "-").replace("\\&", "")


def help_of(program, *command):
    done = subprocess.run([program, *command, "--help"], capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        complain(f"{command}: --help ended with {done.returncode}")
    return done.stdout


def options(text):
    return set(OPTION.findall(text)) - {"--help"}


def check_options(program, command):
    said, written = options(help_of(program, command)), options(page_text(f"vramscope-{command}"))
    for option in sorted(said - written):
        complain(f"vramscope-{command}(1) does not have {option}, which --help has")
    for option in sorted(written - said):
        complain(f"vramscope-{command}(1) has {option}, which --help does not")


def check_variables():
    with open(os.path.join(ROOT, "shim", "config.c"), encoding="utf-8") as file:
        table = file.read().split("variables[] = {", 1)[1].split("};", 1)[0]
    read = {"VRAMSCOPE_" + name for name in re.findall(r'^\s*\{"([A-Z_]+)"', table, re.M)}
    written = set(re.findall(r"^\.B (VRAMSCOPE_[A-Z_]+)$", page_text("vramscope"), re.M))
    if len(read) < 10:
        complain("shim/config.c: no table of variables found")
    if read != written:
        complain(f"vramscope(1): not there {sorted(read - written)}, too many {sorted(written - read)}")


def check_references(name):
    for other in re.findall(r"(vramscope[a-z-]*)\(1\)", page_text(name)):
        if not os.path.exists(os.path.join(PAGES, other + ".1")):
            complain(f"{name}(1) refers to {other}(1), which is not there")


def check_format(paths):
    if shutil.which(FORMAT[0]) is None:
        print("groff is not here: the pages' markup was not checked")
        return
    for path in paths:
        done = subprocess.run([*FORMAT, path], capture_output=True, text=True, timeout=60)
        if done.returncode != 0 or done.stdout or done.stderr:
            complain(f"{path}: {done.stdout}{done.stderr}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vramscope", required=True)
    program = parser.parse_args().vramscope
    commands = re.findall(r"^  ([a-z]+) +\S", help_of(program), re.M)
    if len(commands) < 6:
        complain(f"vramscope --help lists only {commands}")
    for command in commands:
        check_options(program, command)
    check_variables()
    paths = sorted(glob.glob(os.path.join(PAGES, "*.1")))
    names = [os.path.basename(path)[:-2] for path in paths]
    for name in sorted(set(names) - {f"vramscope-{command}" for command in commands} - {"vramscope"}):
        complain(f"{name}(1) is about a command that `vramscope --help` does not list")
    for name in names:
        check_references(name)
    check_format(paths)
    for fault in faults:
        print(fault)
    print(f"{len(paths)} pages, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
