#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every command has a manual page that names its options and no others, the
variables are all in vramscope(1), vscope(5) has the types of chunks of docs/format.md, the
references lead somewhere, and the pages format without a complaint of groff or mandoc:
man.py --vramscope PROGRAM."""

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
FORMATS = [["groff", "-t", "-man", "-Tutf8", "-ww", "-z"], ["mandoc", "-Tlint", "-W", "style"]]
# Of the source, which is not wrapped as narrowly as what it becomes.
ALLOWED = "STYLE: input text line longer than 80 bytes"

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


def check_references(path):
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"\\f[BRI]", "", file.read()).replace("\\-", "-")
    for other, section in re.findall(r"(v(?:ram)?scope[a-z-]*)\(([1-8])\)", text):
        if not os.path.exists(os.path.join(PAGES, f"{other}.{section}")):
            complain(f"{path} refers to {other}({section}), which is not there")


def check_index(commands):
    listed = re.findall(r"vramscope-([a-z]+)\(1\)", page_text("vramscope"))
    for command in commands:
        if listed.count(command) < 2:
            complain(f"vramscope(1) lacks {command}, among the commands or in SEE ALSO")


def check_chunks():
    with open(os.path.join(ROOT, "docs", "format.md"), encoding="utf-8") as file:
        there = dict(re.findall(r"^\| (0x[0-9A-F]{4}) \| ([A-Z]+) \|", file.read(), re.M))
    with open(os.path.join(PAGES, "vscope.5"), encoding="utf-8") as file:
        here = dict(re.findall(r"^(0x[0-9A-F]{4})\t([A-Z]+)\t", file.read(), re.M))
    if len(there) < 10 or there != here:
        complain(f"types of chunks: docs/format.md has {there}, vscope(5) {here}")


def check_format(paths):
    for command in FORMATS:
        if shutil.which(command[0]) is None:
            print(f"{command[0]} is not here: it did not check the pages' markup")
            continue
        for path in paths:
            done = subprocess.run([*command, path], capture_output=True, text=True, timeout=60)
            said = [line for line in (done.stdout + done.stderr).splitlines() if ALLOWED not in line]
            if said or (done.returncode != 0 and command[0] != "mandoc"):
                complain("\n".join([f"{path}: {command[0]} ended with {done.returncode}", *said]))


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
    check_index(commands)
    check_chunks()
    paths = sorted(glob.glob(os.path.join(PAGES, "*.[1-8]")))
    names = [os.path.basename(path)[:-2] for path in paths if path.endswith(".1")]
    for name in sorted(set(names) - {f"vramscope-{command}" for command in commands} - {"vramscope"}):
        complain(f"{name}(1) is about a command that `vramscope --help` does not list")
    for path in paths:
        check_references(path)
    check_format(paths)
    for fault in faults:
        print(fault)
    print(f"{len(paths)} pages, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
