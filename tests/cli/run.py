#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden command-line tests: every cases/*.case is a session in a folder of traces
made from traces/*.txt, with what people paste (pastes/*.txt) in pastes/.

A case:
    $ vramscope verify faulty.vscope      a command; "| json PATH" picks from JSON output
    ? 1                                   its exit status
    ! vramscope: …                        its lines on stderr
    …                                     its lines on stdout, as they are

run.py --vramscope PATH --mktrace PATH [--cases FOLDER] [--update] [NAME …]
"""
import argparse
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent

# What depends on how well a trace compresses, not on what it says.
MASKS = [
    (re.compile(r" in \S+ \S+, \S+ bytes each"), " in SIZE, N bytes each"),
    (re.compile(r"^(ok +checksums +)\d+ chunks"), r"\1N chunks"),
    (re.compile(r'^  "bytes": \d+,'), '  "bytes": N,'),
]


def make_traces(mktrace, folder):
    for script in sorted((HERE / "traces").rglob("*.txt")):
        out = folder / script.relative_to(HERE / "traces").with_suffix(".vscope")
        out.parent.mkdir(exist_ok=True)
        subprocess.run([mktrace, script, out], check=True)


def pick(text, path):
    value = json.loads(text)
    for step in path.split("."):
        if step == "*":
            continue
        value = value[int(step)] if step.lstrip("-").isdigit() else value[step]
    return json.dumps(value, indent=1, sort_keys=True) + "\n"


def mask(line):
    for pattern, replacement in MASKS:
        line = pattern.sub(replacement, line)
    return line


def run(command, vramscope, folder):
    """The lines a case would have after this command."""
    command, _, path = command.partition(" | json ")
    words = shlex.split(command)
    if words[0] != "vramscope":
        raise SystemExit(f"a case runs vramscope, not {words[0]}")
    environment = {"PATH": os.environ["PATH"], "TERM": "dumb", "LC_ALL": "C.UTF-8"}
    done = subprocess.run([vramscope, *words[1:]], cwd=folder, env=environment, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    out = pick(done.stdout, path) if path else done.stdout
    return ([f"? {done.returncode}"] + [f"! {line}" for line in done.stderr.splitlines()]
            + [mask(line) for line in out.splitlines()])


def commands_of(case):
    """[(command, expected lines)]; lines before the first command are a comment."""
    parts = []
    for line in case.read_text().splitlines():
        if line.startswith("$ "):
            parts.append((line[2:], []))
        elif parts:
            parts[-1][1].append(line)
    return parts


def show_difference(command, expected, got):
    print(f"  $ {command}")
    for index in range(max(len(expected), len(got))):
        left = expected[index] if index < len(expected) else None
        right = got[index] if index < len(got) else None
        if left != right:
            print(f"    line {index + 1}\n      expected {left!r}\n      got      {right!r}")


def run_case(case, arguments, folder):
    comment = case.read_text().split("$ ", 1)[0]
    rewritten, failed, count = comment, 0, 0
    for command, expected in commands_of(case):
        got = run(command, arguments.vramscope, folder)
        rewritten += f"$ {command}\n" + "".join(f"{line}\n" for line in got)
        count += 1
        if got != expected and not arguments.update:
            failed += 1
            print(f"FAILED {case.name}")
            show_difference(command, expected, got)
    if arguments.update:
        case.write_text(rewritten)
    return count, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--vramscope", required=True, type=pathlib.Path)
    parser.add_argument("--mktrace", required=True, type=pathlib.Path)
    parser.add_argument("--cases", type=pathlib.Path, default=HERE / "cases")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    arguments.vramscope = arguments.vramscope.resolve()
    commands = failed = 0
    with tempfile.TemporaryDirectory(prefix="vramscope-cli-") as name:
        folder = pathlib.Path(name)
        make_traces(arguments.mktrace.resolve(), folder)
        shutil.copytree(HERE / "pastes", folder / "pastes")
        for case in sorted(arguments.cases.glob("*.case")):
            if arguments.names and case.stem not in arguments.names:
                continue
            ran, wrong = run_case(case, arguments, folder)
            commands += ran
            failed += wrong
    print(f"{commands} commands, {failed} differ")
    return 1 if failed or commands == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
