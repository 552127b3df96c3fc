#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that keep nothing show no growth and no failed request; each one's mutant, which
keeps a block of 512 bytes or an object of every step, shows that alone, at its line.

usage: healthy.py --bin DIR --simgpu SCRIPT [--python PYTHON]
Exit status: 0 as expected, 1 not, 77 no PyTorch here.
"""
import pathlib
import sys
import tempfile

import check

PROGRAM = pathlib.Path(__file__).resolve().parent / "programs" / "healthy.py"
PROGRAMS = ["vision", "language", "language_shapes", "evaluation", "accumulation",
            "checkpointing", "mixed_precision", "averaged_weights", "adversarial", "recurrent",
            "generation", "sleep_and_wake", "graphs", "modules", "communicators", "side_stream",
            "replay_buffer", "cache_by_length", "running_metrics", "saved_to_host",
            "last_activation"]
OBJECTS = {"modules": "module", "communicators": "stream"}


def faults_of_mutant(name, report):
    growth = report["growth"]
    if len(growth) != 1:
        return [f"{len(growth)} places grow: {growth}"]
    grown, kind = growth[0], OBJECTS.get(name, "bytes")
    wanted = {"kind": kind, "count_per_step": 1, "bytes_per_step": 512 if kind == "bytes" else 0}
    faults = [f"{field} is {grown[field]}, not {value}" for field, value in wanted.items()
              if grown[field] != value]
    lines = check.lines_of(report, grown["stack"], PROGRAM)
    if check.marked_line(name, PROGRAM) not in lines:
        faults.append(f"at lines {lines}, not {check.marked_line(name, PROGRAM)}")
    return faults


def faults_of_healthy(report):
    loud = [oom for oom in report["ooms"] if not oom["repaired"]]
    return [f"grows: {report['growth']}"] * bool(report["growth"]) + [f"fails: {oom}" for oom in loud]


def main():
    arguments = check.parse_arguments()
    if not arguments.python:
        print("no PyTorch: set VRAMSCOPE_TORCH_PYTHON (scripts/torch-env prints it)")
        return check.SKIPPED
    cases = [case for name in PROGRAMS for case in (name, f"{name} leak")]
    with tempfile.TemporaryDirectory(prefix="vramscope-healthy-") as folder:
        reports = check.run_traced(arguments, folder, PROGRAM, cases)
    wrong = [(name, fault) for name in PROGRAMS for fault in faults_of_healthy(reports[name])]
    wrong += [(f"{name} leak", fault) for name in PROGRAMS
              for fault in faults_of_mutant(name, reports[f"{name} leak"])]
    for case, fault in wrong:
        print(f"WRONG {case}: {fault}")
    print(f"{len(reports)} programs, {len(wrong)} findings that are wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
