#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the categories of a trace against the tensors of a training: at the peak and at
the end, parameters, gradients and optimizer state are their blocks to the byte.

usage: categories.py --bin DIR --simgpu SCRIPT [--python PYTHON]
Exit status: 0 equal, 1 different, 77 no PyTorch here.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SKIPPED = 77
PROGRAM = pathlib.Path(__file__).parent / "programs" / "categories.py"
CASES = ["adam", "sgd", "accumulation", "checkpoints", "built_on_device", "one_by_one"]
EXACT = ["parameters", "gradients", "optimizer_state"]


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    parser.add_argument("--simgpu", required=True)
    parser.add_argument("--python", default=os.environ.get("VRAMSCOPE_TORCH_PYTHON", ""))
    return parser.parse_args()


def run_traced(arguments, folder):
    command = [arguments.bin / "vramscope", "run", "-o", f"{folder}/", "--", arguments.simgpu,
               "--memory", "16G", "--", arguments.python, PROGRAM, *CASES]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=500, check=False,
                          env=dict(os.environ, VRAMSCOPE_LOG="error"))
    if done.returncode != 0:
        raise SystemExit(f"the programs exited with {done.returncode}:\n{done.stdout}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def reports_of(arguments, folder):
    reports = {}
    for trace in sorted(pathlib.Path(folder).rglob("*.vscope")):
        shown = subprocess.run([arguments.bin / "vramscope", "report", "--json", trace],
                               stdout=subprocess.PIPE, text=True, check=True)
        report = json.loads(shown.stdout)
        reports[report["process"]["pid"]] = report
    return reports


def faults_of(ran, report):
    device = report["devices"][0]
    categories = device["categories"]
    faults = []
    for moment in ("at_peak", "at_end"):
        for name in EXACT:
            if categories[moment][name] != ran[name]:
                faults.append(f"{moment}: {name} {categories[moment][name]}, not {ran[name]}")
    sums = {"at_peak": device["peak"]["allocated_bytes"], "at_end": device["end"]["allocated_bytes"]}
    faults += [f"{moment}: the categories sum up to {sum(categories[moment].values())}, not {whole}"
               for moment, whole in sums.items() if sum(categories[moment].values()) != whole]
    seen = {site["category"] for site in report["sites"] if site["layer"] == "framework"}
    faults += [f"no site is of {name}" for name in EXACT + ["activations", "temporaries"]
               if name not in seen]
    faults += [f"{site['stack']}: {site['category']} by {site['category_rule']}"
               for site in report["sites"]
               if (site["category"] == "unknown") != (site["category_rule"] is None)]
    if ran["case"] == "checkpoints" and \
            "recomputed" not in {site["category_rule"] for site in report["sites"]}:
        faults.append("nothing is recomputed")
    return faults


def main():
    arguments = parse_arguments()
    if not arguments.python:
        print("no PyTorch: set VRAMSCOPE_TORCH_PYTHON (scripts/torch-env prints it)")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="vramscope-categories-") as folder:
        programs = run_traced(arguments, folder)
        reports = reports_of(arguments, folder)
    faults = [] if len(programs) == len(CASES) else [f"{len(programs)} programs ran"]
    for ran in programs:
        faults += [f"{ran['case']}: {fault}" for fault in faults_of(ran, reports[ran["pid"]])]
    for fault in faults:
        print(f"DIFFERENT {fault}")
    print(f"{len(programs)} programs, {len(faults)} differences")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
