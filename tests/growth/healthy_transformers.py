#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""As healthy.py, of transformers with a tiny configuration: what keeps nothing shows no growth and
no failed request, and its mutant shows its block of 512 bytes at its line.

usage: healthy_transformers.py --bin DIR --simgpu SCRIPT [--python PYTHON]

The interpreter is VRAMSCOPE_FRAMEWORKS_PYTHON (scripts/frameworks-env prints it).
Exit status: 0 as expected, 1 not, 77 no such environment here.
"""
import os
import pathlib
import sys
import tempfile

os.environ["VRAMSCOPE_TORCH_PYTHON"] = os.environ.get("VRAMSCOPE_FRAMEWORKS_PYTHON", "")
os.environ["HF_HUB_OFFLINE"] = "1"

import check as growth
import healthy
from check import real_torch

PROGRAM = pathlib.Path(__file__).resolve().parent / "programs" / "transformers_tiny.py"
NAMES = ["trainer", "answers"]


def check(arguments):
    wrong, cases = [], [case for name in NAMES for case in (name, f"{name} leak")]
    with tempfile.TemporaryDirectory(prefix="vramscope-transformers-") as folder:
        os.chdir(folder)
        for case in cases:
            traces = tempfile.mkdtemp(dir=folder)
            reports = growth.run_traced(arguments, traces, PROGRAM, [case])
            name, leaks = case.split()[0], case.endswith(" leak")
            faults = healthy.faults_of_mutant(name, reports[case], PROGRAM) if leaks \
                else healthy.faults_of_healthy(reports[case])
            wrong += [(case, fault) for fault in faults]
        os.chdir("/")
    return real_torch.tell("WRONG", len(cases), wrong)


if __name__ == "__main__":
    sys.exit(real_torch.run_test(check))
