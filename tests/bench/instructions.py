#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Instructions per event, counted by callgrind, against instructions.json: a gate
that does not depend on how busy the machine is. Counts belong to a compiler, a
processor family and, for Python, its version; where there are none for these,
the figures are printed and the exit status is 77.

  instructions.py --bench FOLDER --compiler NAME-VERSION [--update]"""
import argparse
import json
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
HERE = pathlib.Path(__file__).resolve().parent
KEPT = HERE / "instructions.json"
EVENTS = 1000
ALLOWED = 0.05


def count(folder, command):
    done = subprocess.run(["valgrind", "--tool=callgrind", "--collect-atstart=no",
                           f"--callgrind-out-file={folder}/callgrind.out", *map(str, command)],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    found = re.search(r"Collected : (\d+)", done.stdout)
    if done.returncode != 0 or found is None or int(found.group(1)) == 0:
        raise SystemExit(f"{command[0]} under valgrind ended with {done.returncode}:\n"
                         f"{done.stdout[-2000:]}")
    return int(found.group(1)) / EVENTS


def measure(bench, folder):
    """Per event: without a stack, with a warm native one of 20 frames, with a warm Python one of 30."""
    python = f"python {platform.python_version_tuple()[0]}.{platform.python_version_tuple()[1]}"
    return {
        "none": count(folder, [bench / "stack_bench", "count", "none", EVENTS]),
        "native": count(folder, [bench / "stack_bench", "count", "native", EVENTS]),
        python: count(folder, [sys.executable, HERE / "stack_python.py",
                               bench / "libstack_core.so", "count", EVENTS]),
    }


def compare(measured, kept):
    """Exit status. Fewer instructions than kept fail too: then the kept ones are out of date."""
    status = 0
    for name, value in measured.items():
        if name not in kept:
            print(f"{name}: {value:.0f} instructions per event, none kept for comparison")
            continue
        change = value / kept[name] - 1
        holds = abs(change) <= ALLOWED
        print(f"{name}: {value:.0f} instructions per event, kept {kept[name]:.0f}, "
              f"{100 * change:+.1f} %{'' if holds else ' : more than 5 % (--update keeps the new ones)'}")
        status = status if holds else 1
    return status


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bench", required=True, type=pathlib.Path)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--update", action="store_true")
    arguments = parser.parse_args()
    if shutil.which("valgrind") is None:
        print("valgrind is not installed")
        return SKIPPED
    key = f"{arguments.compiler} {platform.machine()}"
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        measured = measure(arguments.bench, folder)
    if arguments.update:
        kept[key] = dict(kept.get(key, {}), **{name: round(value) for name, value in measured.items()})
        KEPT.write_text(json.dumps(kept, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    status = compare(measured, kept.get(key, {}))
    if status == 0 and not set(measured) & set(kept.get(key, {})):
        print(f"no counts are kept for {key}")
        return SKIPPED
    return status


if __name__ == "__main__":
    sys.exit(main())
