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

import check as growth
from check import real_torch

PROGRAM = pathlib.Path(__file__).resolve().parent / "programs" / "healthy.py"
PROGRAMS = ["vision", "language", "language_shapes", "evaluation", "accumulation",
            "checkpointing", "mixed_precision", "averaged_weights", "adversarial", "recurrent",
            "generation", "sleep_and_wake", "graphs", "modules", "communicators", "side_stream",
            "replay_buffer", "cache_by_length", "running_metrics", "saved_to_host",
            "last_activation", "finding_the_rate", "early_stopping", "moving_average",
            "filling_buffer", "answers", "varying_depth", "scaler_skips",
            "gradients_to_zero", "evaluation_behind", "evaluation_between"]
# What a step is there is not what the mutant keeps a block of: a token, a pass over one batch.
# The blocks there are in the end: what the last step made is no growth.
OTHER_STEPS = {"answers": 39, "gradients_to_zero": 39, "evaluation_between": 24}
OBJECTS = {"modules": "module", "communicators": "stream"}


def faults_of_mutant(name, report, program=PROGRAM, other_steps=None, objects=None):
    other_steps, objects = other_steps or OTHER_STEPS, objects or OBJECTS
    places = report["growth"]
    if len(places) != 1:
        return [f"{len(places)} places grow: {places}"]
    grown, kind = places[0], objects.get(name, "bytes")
    wanted = {"kind": kind, "count_per_step": 1, "bytes_per_step": 512 if kind == "bytes" else 0}
    if name in other_steps:
        wanted = {"kind": kind, "end_count": other_steps[name],
                  "end_bytes": 512 * other_steps[name],
                  "grown_bytes": 512 * grown["grown_count"]}
    faults = [f"{field} is {grown[field]}, not {value}" for field, value in wanted.items()
              if grown[field] != value]
    lines = growth.lines_of(report, grown["stack"], program)
    if growth.marked_line(name, program) not in lines:
        faults.append(f"at lines {lines}, not {growth.marked_line(name, program)}")
    return faults


def faults_of_healthy(report):
    loud = [oom for oom in report["ooms"] if not oom["repaired"]]
    return [f"grows: {report['growth']}"] * bool(report["growth"]) + [f"fails: {oom}" for oom in loud]


def check(arguments):
    cases = [case for name in PROGRAMS for case in (name, f"{name} leak")]
    with tempfile.TemporaryDirectory(prefix="vramscope-healthy-") as folder:
        reports = growth.run_traced(arguments, folder, PROGRAM, cases)
    wrong = [(name, fault) for name in PROGRAMS for fault in faults_of_healthy(reports[name])]
    wrong += [(f"{name} leak", fault) for name in PROGRAMS
              for fault in faults_of_mutant(name, reports[f"{name} leak"])]
    return real_torch.tell("WRONG", len(reports), wrong)


if __name__ == "__main__":
    sys.exit(real_torch.run_test(check))
