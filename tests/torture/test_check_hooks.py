#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check-hooks notices what it is there for: a row taken away, a variant, an argument too few.

  test_check_hooks.py SOURCE COMPILER INCLUDE_DIR
"""

import os
import subprocess
import sys
import tempfile

SOURCE, COMPILER, HEADERS = sys.argv[1:4]
TABLE = os.path.join(SOURCE, "shim", "hooks.def")
# What is done to the table, and what must be complained of.
CHANGES = [
    ("cuMemAllocManaged ", None, "cuMemAllocManaged is neither hooked nor left alone"),
    ("cudaMallocAsync[_ptsz]", None, "cudaMallocAsync_ptsz is neither hooked nor left alone"),
    ("cuCtxCreate_v4 ", None, "cuCtxCreate of CUDA 12050 is not in the table"),
    ("cuUserObjectRetain ", None, "cuUserObjectRetain is neither hooked nor left alone"),
    ("cuMemMap ", ("uint64_t handle, unsigned long long map_flags", "uint64_t handle"),
     "cuMemMap takes 5 arguments, the table passes 4"),
]


def change(text, beginning, replacement):
    lines = []
    for line in text.splitlines(keepends=True):
        if line.startswith(beginning):
            if replacement is None:
                continue
            assert replacement[0] in line, line
            line = line.replace(*replacement)
        lines.append(line)
    changed = "".join(lines)
    assert changed != text, f"{beginning}: no such row"
    return changed


def check(text):
    with tempfile.NamedTemporaryFile("w", suffix=".def") as table:
        table.write(text)
        table.flush()
        return subprocess.run([os.path.join(SOURCE, "scripts", "check-hooks"), table.name,
                               "--compiler", COMPILER, HEADERS], capture_output=True, text=True)


def main():
    with open(TABLE, encoding="utf-8") as file:
        text = file.read()
    faults = []
    for beginning, replacement, complaint in CHANGES:
        done = check(change(text, beginning, replacement))
        if done.returncode != 1 or complaint not in done.stderr:
            faults.append(f"{beginning.strip()}: exit {done.returncode}, said {done.stderr!r}")
    for fault in faults:
        print(fault, file=sys.stderr)
    sys.exit(1 if faults else 0)


main()
