#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loops of unusual shape that keep nothing show no growth; each one's mutant, which keeps a block
of 512 bytes or an object of every round, shows that alone, at its line.

usage: unusual.py --bin DIR --simgpu SCRIPT [--python PYTHON] [NAME ...]
Exit status: 0 as expected, 1 not, 77 no PyTorch here.
"""
import pathlib
import sys
import tempfile

import check as growth
import healthy
from check import real_torch

PROGRAM = pathlib.Path(__file__).resolve().parent / "programs" / "unusual.py"
PROGRAMS = [
    "only_appended", "recaptured", "growing_model", "curriculum", "profiled", "saving", "ring_of_losses", "cached_calls", "hooked", "retained",
    "rebuilt", "caught_errors", "metric", "streams", "pinned_loader", "loaded_weights",
    "two_tasks", "denoising", "inner_loop", "late_parameters", "second_order", "offloaded",
    "teachers", "prefetched", "beams", "finding_the_batch"]
# What a step is there is not what the mutant keeps a block of: a layer, a pass of the denoiser, a
# token, both tasks. A profiler's steps have stacks of their own, and are not among those found.
OTHER_STEPS = {"recaptured": 39, "loaded_weights": 39, "offloaded": 39, "denoising": 19,
               "beams": 39, "two_tasks": 38, "profiled": 23}
OBJECTS = {"streams": "stream"}


def faults_of(name, case, report):
    if case != name:
        return healthy.faults_of_mutant(name, report, PROGRAM, OTHER_STEPS, OBJECTS)
    if name != "finding_the_batch":
        return healthy.faults_of_healthy(report)
    faults = [f"grows: {report['growth']}"] * bool(report["growth"])
    if [oom["handled"] for oom in report["ooms"]] != [True]:
        faults.append(f"not one request that failed and was handled: {report['ooms']}")
    return faults


def check(arguments):
    names = arguments.names or PROGRAMS
    cases = [case for name in names for case in (name, f"{name} leak")]
    with tempfile.TemporaryDirectory(prefix="vramscope-unusual-") as folder:
        reports = growth.run_traced(arguments, folder, PROGRAM, cases)
    wrong = [(case, fault) for case in cases
             for fault in faults_of(case.split()[0], case, reports[case])]
    return real_torch.tell("WRONG", len(reports), wrong)


if __name__ == "__main__":
    sys.exit(real_torch.run_test(check))
