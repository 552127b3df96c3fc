#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the categories of a trace against the tensors of a training: at the peak and at
the end, parameters, gradients and optimizer state are their blocks to the byte.

usage: categories.py --bin DIR --simgpu SCRIPT [--python PYTHON]
Exit status: 0 equal, 1 different, 77 no PyTorch here.
"""
import json
import pathlib
import sys
import tempfile

import real_torch

PROGRAM = pathlib.Path(__file__).parent / "programs" / "categories.py"
CASES = ["adam", "sgd", "accumulation", "checkpoints", "built_on_device", "one_by_one",
         "accumulation_peak", "kept", "kept_accumulation", "kept_accumulation_peak", "inference"]
EXACT = ["parameters", "gradients", "optimizer_state"]


def faults_of(ran, report):
    device = report["devices"][0]
    categories = device["categories"]
    faults = []
    for moment in ("at_peak", "at_end"):
        for name in EXACT:
            if categories[moment][name] != ran[name]:
                faults.append(f"{moment}: {name} {categories[moment][name]}, not {ran[name]}")
    if "held" in ran and categories["at_peak"]["unknown"] != ran["held"]:
        faults.append(f"unknown are {categories['at_peak']['unknown']}, not {ran['held']}")
    sums = {"at_peak": device["peak"]["allocated_bytes"], "at_end": device["end"]["allocated_bytes"]}
    faults += [f"{moment}: the categories sum up to {sum(categories[moment].values())}, not {whole}"
               for moment, whole in sums.items() if sum(categories[moment].values()) != whole]
    seen = {site["category"] for site in report["sites"] if site["layer"] == "framework"}
    there = [name for name in EXACT if ran[name] != 0] + ["temporaries"]
    there += ["activations"] if ran["gradients"] != 0 else []
    faults += [f"no site is of {name}" for name in there if name not in seen]
    faults += [f"sites are of {name}" for name in EXACT if ran[name] == 0 and name in seen]
    faults += [f"{site['stack']}: {site['category']} by {site['category_rule']}"
               for site in report["sites"]
               if (site["category"] == "unknown") != (site["category_rule"] is None)]
    if ran["case"] == "checkpoints" and \
            "recomputed" not in {site["category_rule"] for site in report["sites"]}:
        faults.append("nothing is recomputed")
    return faults


def check(arguments):
    with tempfile.TemporaryDirectory(prefix="vramscope-categories-") as folder:
        printed = real_torch.run_programs(arguments, folder, "16G", PROGRAM, CASES)
        programs = [json.loads(line) for line in printed.splitlines()]
        reports = real_torch.reports_of(arguments, folder)
    faults = [] if len(programs) == len(CASES) else [("all", f"{len(programs)} programs ran")]
    faults += [(ran["case"], fault) for ran in programs for fault in faults_of(ran, reports[ran["pid"]])]
    return real_torch.tell("DIFFERENT", len(programs), faults)


if __name__ == "__main__":
    sys.exit(real_torch.run_test(check))
