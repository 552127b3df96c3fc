#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""README.md and docs/*.md stay true: every `vramscope` command line shown has a command and
options that --help knows, and every link leads to a file and a heading: docs.py --vramscope PROGRAM.
That the commands work, and print what is shown, is docs_run.py's."""

import argparse
import functools
import glob
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]+|-[a-zA-Z])(?![\w-])")
COMMAND = re.compile(r"(?:^|(?<=[\s`/(\"]))vramscope ((?:-h|--help|[a-z]+)\b[^`|#\n]*)")

faults = []
counts = {"commands": 0, "links": 0}


@functools.lru_cache(None)
def known(program, command):
    """The options of a command, None if there is no such command."""
    done = subprocess.run([program, *command.split(), "--help"], capture_output=True, text=True, timeout=60)
    return set(OPTION.findall(done.stdout)) | {"--help"} if done.returncode == 0 else None


def shown(text):
    """What is code on a page: the lines of its blocks, and its spans."""
    blocks = re.findall(r"^ *```\w*\n(.*?)^ *```", text, re.M | re.S)
    rest = re.sub(r"^ *```\w*\n.*?^ *```", "", text, flags=re.M | re.S)
    for block in blocks:
        yield from re.sub(r"\\\n\s*", "", block).splitlines()
    yield from (span.replace("\n", " ") for span in re.findall(r"`([^`]+)`", rest))


def check_commands(page, text, program):
    for line in shown(text):
        for call in COMMAND.findall(line):
            words = re.split(r"[ ,.;:]", call.split(" -- ")[0], maxsplit=1)
            words = words[:1] + " ".join(words[1:]).split()
            options = known(program, words[0])
            counts["commands"] += 1
            if options is None:
                faults.append(f"{page}: no such command: vramscope {call}")
                continue
            for option in set(OPTION.findall(" ".join(words[1:]))) - options:
                faults.append(f"{page}: vramscope {words[0]} has no {option}")


def headings(path):
    with open(path, encoding="utf-8") as file:
        lines = re.findall(r"^#+ (.*)$", file.read(), re.M)
    return {re.sub(r"[^\w\- ]", "", line.lower()).strip().replace(" ", "-") for line in lines}


def check_links(page, text):
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        counts["links"] += 1
        name, _, anchor = target.partition("#")
        path = os.path.normpath(os.path.join(ROOT, os.path.dirname(page), name)) if name else os.path.join(ROOT, page)
        if not os.path.exists(path):
            faults.append(f"{page}: {target} is not there")
        elif anchor and anchor not in headings(path):
            faults.append(f"{page}: {target}: no such heading")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vramscope", required=True)
    program = os.path.abspath(parser.parse_args().vramscope)
    pages = ["README.md"] + sorted(os.path.relpath(path, ROOT) for path in glob.glob(os.path.join(ROOT, "docs", "*.md")))
    for page in pages:
        with open(os.path.join(ROOT, page), encoding="utf-8") as file:
            text = file.read()
        check_commands(page, text, program)
        check_links(page, text)
    faults.extend(f"no {what} found on any page" for what, count in counts.items() if count == 0)
    for fault in faults:
        print(fault)
    print(f"{len(pages)} pages, {counts}, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
