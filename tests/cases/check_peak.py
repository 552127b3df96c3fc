#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A peak between the prints of a PyTorch program: the report names what the program printed and
the peak that PyTorch itself counted, and the lines that made it; a program whose prints show
its peak gets no such line.

usage: check_peak.py --bin DIR --simgpu SCRIPT [--python PYTHON]
Exit status: 0 as expected, 1 not, 77 no PyTorch here.
"""
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "torch"))
import real_torch  # noqa: E402

MIB = 1 << 20
PROGRAM = pathlib.Path(__file__).resolve().parent / "programs" / "torch_prints.py"
CASES = ["between", "unmarked", "healthy"]
WORDS = "prints at the ends of steps miss it"


def line_that_makes_it():
    lines = PROGRAM.read_text().splitlines()
    return next(number for number, text in enumerate(lines, 1) if text.endswith("# MAKES THE PEAK"))


def faults_of_figures(line, peak):
    """PyTorch's figures and ours."""
    ends = peak["step_ends"] or {}
    wanted = {"the peak": (peak["allocated_bytes"], line["peak"]),
              "the ends of steps": (ends.get("highest_bytes"), line["printed"])}
    return [f"{name}: {ours}, PyTorch says {theirs}"
            for name, (ours, theirs) in wanted.items() if ours != theirs]


def faults_of_case(line, report, page):
    peak = report["devices"][0]["peak"]
    recent, near = peak["recent"], peak["near"]
    faults = faults_of_figures(line, peak)
    if WORDS not in page:
        faults.append(f"not told:\n{page}")
    if recent is None or recent["rule"] != "steps" or recent["last_bytes"] != 510 * MIB:
        return faults + [f"made last: {recent}"]
    largest = max(recent["sites"], key=lambda site: site["last_bytes"])
    frames = next(site for site in report["sites"] if site["stack"] == largest["stack"])["frames"]
    if line_that_makes_it() not in [frame["line"] for frame in frames]:
        faults.append(f"made by {frames}")
    if near["times"] != 1:
        faults.append(f"near the peak {near}")
    return faults


def check(arguments):
    wrong = []
    with tempfile.TemporaryDirectory(prefix="vramscope-peak-") as folder:
        printed = real_torch.run_programs(arguments, folder, "4G", PROGRAM, CASES)
        lines = {line["pid"]: line for line in map(json.loads, printed.splitlines())}
        for trace in sorted(pathlib.Path(folder).rglob("*.vscope")):
            report = real_torch.report_of(arguments, trace)
            line = lines.pop(report["process"]["pid"], None)
            if line is None:
                continue  # the parent, which has no device
            page = " ".join(real_torch.page_of(arguments, trace).split())
            if line["case"] != "healthy":
                faults = faults_of_case(line, report, page)
            else:
                faults = faults_of_figures(line, report["devices"][0]["peak"])
                faults += [f"told:\n{page}"] if WORDS in page else []
            wrong += [(line["case"], fault) for fault in faults]
    wrong += [(line["case"], "no trace") for line in lines.values()]
    return real_torch.tell("WRONG", len(CASES), wrong)


if __name__ == "__main__":
    sys.exit(real_torch.run_test(check))
