#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Traces real PyTorch loops on the simulated device: healthy ones show no growth, and
each with a leak shows it at its line, with its bytes per step.

usage: check.py --bin DIR --simgpu SCRIPT --python PYTHON
Exit status: 0 as expected, 1 not, 77 no PyTorch here.
"""
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "torch"))
import real_torch  # noqa: E402

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


def run_traced(arguments, folder, program, cases):
    """The report of each case, by its words."""
    printed = real_torch.run_programs(arguments, folder, "16G", program, cases, timeout_s=900)
    ran = (json.loads(line) for line in printed.splitlines() if line.startswith('{"pid"'))
    reports = real_torch.reports_of(arguments, folder)
    return {one["case"]: reports[one["pid"]] for one in ran if one["pid"] in reports}


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


def check(arguments):
    with tempfile.TemporaryDirectory(prefix="vramscope-growth-") as folder:
        cases = HEALTHY + [leak[0] for leak in LEAKS] + ["plain --leak graph"]
        reports = run_traced(arguments, folder, PROGRAM, cases)
    wrong = [(case, f"grows: {reports[case]['growth']}") for case in HEALTHY
             if reports[case]["growth"]]
    for case, *expected in LEAKS:
        wrong += [(case, what) for what in check_leak(reports[case], *expected)]
    wrong += [("plain --leak graph", what) for what in check_graph(reports["plain --leak graph"])]
    return real_torch.tell("WRONG", len(reports), wrong)


if __name__ == "__main__":
    sys.exit(real_torch.run_test(check))
