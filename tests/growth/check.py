#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Traces real PyTorch loops on the simulated device: healthy ones show no growth, and
each with a leak shows it at its line, with its bytes per step.

usage: check.py --bin DIR --simgpu SCRIPT --python PYTHON
Exit status: 0 as expected, 1 not, 77 no PyTorch here.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SKIPPED = 77
PROGRAM = pathlib.Path(__file__).resolve().parent / "programs" / "trains.py"
HEALTHY = ["plain", "accumulation", "evaluation", "shapes", "checkpoints", "infer", "epochs",
           "joined", "late"]
# Case, marked line, kind, bytes and count per step.
LEAKS = [
    ("plain --leak block", "block", "bytes", 512, 1),
    ("sgd --leak loss", "loss", "bytes", 512, 1),
    ("late --leak loss", "loss", "bytes", 512, 1),
    ("accumulation --leak block", "block", "bytes", 512, 1),
    ("evaluation --leak block", "block", "bytes", 512, 1),
    ("shapes --leak block", "block", "bytes", 512, 1),
    ("infer --leak block", "block", "bytes", 512, 1),
    ("plain --leak pinned", "pinned", "bytes", 8192, 1),
    ("plain --leak stream", "stream", "stream", 0, 1),
    ("epochs --leak block", "epoch", "bytes", 512, 1),
    ("joined --leak block", "joined", "bytes", 2560, 0),
]


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    parser.add_argument("--simgpu", required=True)
    parser.add_argument("--python", default=os.environ.get("VRAMSCOPE_TORCH_PYTHON", ""))
    return parser.parse_args()


def run_traced(arguments, folder, program, cases):
    """The report of each case, by its words."""
    command = [arguments.bin / "vramscope", "run", "-o", f"{folder}/", "--", arguments.simgpu,
               "--memory", "16G", "--", arguments.python, program, *cases]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=900, check=False,
                          env=dict(os.environ, VRAMSCOPE_LOG="error"))
    if done.returncode != 0:
        raise SystemExit(f"the programs exited with {done.returncode}:\n{done.stdout}")
    by_pid = {}
    for line in done.stdout.splitlines():
        if line.startswith('{"pid"'):
            ran = json.loads(line)
            by_pid[ran["pid"]] = ran["case"]
    return {by_pid[pid]: report for pid, report in reports_of(arguments, folder) if pid in by_pid}


def reports_of(arguments, folder):
    for trace in sorted(pathlib.Path(folder).rglob("*.vscope")):
        shown = subprocess.run([arguments.bin / "vramscope", "report", "--json", trace],
                               stdout=subprocess.PIPE, text=True, check=True)
        report = json.loads(shown.stdout)
        yield report["process"]["pid"], report


def lines_of(report, stack, program=PROGRAM):
    """Lines of the program in a stack, innermost first."""
    site = next(site for site in report["sites"] if site["stack"] == stack)
    return [frame["line"] for frame in site["frames"] if frame["file"] == str(program)]


def marked_line(mark, program=PROGRAM):
    for number, text in enumerate(program.read_text().splitlines(), 1):
        if text.endswith(f"# LEAK {mark}"):
            return number
    raise SystemExit(f"no line is marked {mark}")


def check_leak(report, mark, kind, bytes_per_step, count_per_step):
    """What is wrong with the report of a leak; empty when nothing is."""
    wrong = []
    growth = [grown for grown in report["growth"] if grown["kind"] == kind]
    if len(growth) != 1 or len(report["growth"]) != 1:
        return [f"{len(report['growth'])} places grow: {report['growth']}"]
    grown = growth[0]
    if marked_line(mark) not in lines_of(report, grown["stack"]):
        wrong.append(f"at lines {lines_of(report, grown['stack'])}, not {marked_line(mark)}")
    for field, wanted in (("bytes_per_step", bytes_per_step), ("count_per_step", count_per_step)):
        if grown[field] != wanted:
            wrong.append(f"{field} is {grown[field]}, not {wanted}")
    if grown["steps"] < 26:
        wrong.append(f"{grown['steps']} steps")
    return wrong


def check_graph(report):
    """Losses kept with their graphs: the activations of each step stay, at many places."""
    lines = {line for grown in report["growth"] for line in lines_of(report, grown["stack"])}
    wrong = [] if len(report["growth"]) >= 5 else [f"{len(report['growth'])} places grow"]
    if sum(grown["bytes_per_step"] for grown in report["growth"]) < 8 * 64 * 4 * 4:
        wrong.append("less grows than a layer's activations")
    return wrong if lines else wrong + ["no line of the program"]


def main():
    arguments = parse_arguments()
    if not arguments.python:
        print("no PyTorch: set VRAMSCOPE_TORCH_PYTHON (scripts/torch-env prints it)")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="vramscope-growth-") as folder:
        cases = HEALTHY + [leak[0] for leak in LEAKS] + ["plain --leak graph"]
        reports = run_traced(arguments, folder, PROGRAM, cases)
    wrong = [(case, f"grows: {reports[case]['growth']}") for case in HEALTHY
             if reports[case]["growth"]]
    for case, *expected in LEAKS:
        wrong += [(case, what) for what in check_leak(reports[case], *expected)]
    wrong += [("plain --leak graph", what) for what in check_graph(reports["plain --leak graph"])]
    for case, what in wrong:
        print(f"WRONG {case}: {what}")
    print(f"{len(reports)} programs, {len(wrong)} findings that are wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
