#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""README.md and docs/*.md stay true: every `vramscope` command line shown has a command and
options that --help knows, every link leads to a file and a heading, and where a page shows
`$ vramscope … NAME.vscope` of a trace in tests/cli/traces its output is the real one. A line
of that output that is only "…" stands for any lines, "…" within a line for any text:
docs.py --vramscope PROGRAM --mktrace PROGRAM."""

import argparse
import functools
import glob
import os
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TRACES = os.path.join(ROOT, "tests", "cli", "traces")
OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]+|-[a-zA-Z])(?![\w-])")
COMMAND = re.compile(r"(?:^|(?<=[\s`/(\"]))vramscope ((?:-h|--help|[a-z]+)\b[^`|#\n]*)")

faults = []
counts = {"commands": 0, "links": 0, "outputs": 0}


@functools.lru_cache(None)
def known(program, command):
    """The options of a command, None if there is no such command."""
    done = subprocess.run([program, *command.split(), "--help"], capture_output=True, text=True, timeout=60)
    return set(OPTION.findall(done.stdout)) | {"--help"} if done.returncode == 0 else None


def shown(text):
    """What is code on a page: the lines of its blocks, and its spans."""
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.M | re.S)
    rest = re.sub(r"^```\w*\n.*?^```", "", text, flags=re.M | re.S)
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


def pattern(lines):
    """A regular expression for an output in which "…" stands for what was left out."""
    parts = [r"(?:.*\n)*" if line.strip() == "…" else
             ".*".join(map(re.escape, line.split("…"))) + r"\n" for line in lines]
    return re.compile("".join(parts))


def check_outputs(page, text, programs, folder):
    for block in re.findall(r"^```\w*\n(\$ .*?)^```", text, re.M | re.S):
        command, *lines = block.splitlines()
        words = shlex.split(command[2:])
        name = os.path.basename(words[-1]).removesuffix(".vscope")
        script = os.path.join(TRACES, name + ".txt")
        if words[0] != "vramscope" or not words[-1].endswith(".vscope") or not os.path.exists(script):
            continue
        counts["outputs"] += 1
        subprocess.run([programs.mktrace, script, name + ".vscope"], cwd=folder, check=True, timeout=60)
        done = subprocess.run([programs.vramscope, *words[1:]], cwd=folder, capture_output=True, text=True, timeout=60)
        if not pattern(lines).fullmatch(done.stdout):
            faults.append(f"{page}: {command} prints now:\n{done.stdout}{done.stderr}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vramscope", required=True)
    parser.add_argument("--mktrace", required=True)
    programs = parser.parse_args()
    programs = argparse.Namespace(**{name: os.path.abspath(path) for name, path in vars(programs).items()})
    pages = ["README.md"] + sorted(os.path.relpath(path, ROOT) for path in glob.glob(os.path.join(ROOT, "docs", "*.md")))
    with tempfile.TemporaryDirectory() as folder:
        for page in pages:
            with open(os.path.join(ROOT, page), encoding="utf-8") as file:
                text = file.read()
            check_commands(page, text, programs.vramscope)
            check_links(page, text)
            check_outputs(page, text, programs, folder)
    faults.extend(f"no {what} found on any page" for what, count in counts.items() if count == 0)
    for fault in faults:
        print(fault)
    print(f"{len(pages)} pages, {counts}, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
