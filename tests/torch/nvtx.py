#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NVTX's ranges are phases: by real PyTorch and, where the header and a compiler are there, by a
program in C.

usage: nvtx.py --bin DIR --simgpu SCRIPT [--python PYTHON]
Exit status: 0 as it should be, 1 not, 77 no PyTorch here.
"""
import argparse
import collections
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
HERE = pathlib.Path(__file__).resolve().parent
MIB = 1 << 20
# name: entry, peak and exit in MiB of what PyTorch had allocated; whether it ended
PHASES = {"outer": (4, 12, 4, True), "inner": (4, 12, 12, True), "iteration 5": (4, 16, 4, True),
          "across threads": (4, 8, 8, True), "in the other thread": (8, 8, 8, True),
          "never ended": (8, 12, None, False)}
LEVELS = "levels 0 1 1 0 -1"
C_LEVELS = "0 0 1 0 -1 1 0 -1"
C_PHASES = {"default": 1, "library:kept": 1, "höhe 😀": 1, "library:busy": 2000, "nested": 2000,
            "crossing": 2000}
C_MARKS = ["(no name)", "library:(no name)"]


class Lab:
    def __init__(self, arguments, folder):
        self.arguments, self.folder, self.faults = arguments, folder, []

    def run(self, name, command, **environment):
        """(what it printed, its trace)"""
        trace = f"{self.folder}/{name}.vscope"
        done = subprocess.run(
            [str(self.arguments.bin / "vramscope"), "run", "-o", trace, "--", self.arguments.simgpu, "--memory",
             "4G", "--", *command], timeout=300, text=True, stdout=subprocess.PIPE, check=False,
            env=dict({k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}, OMP_NUM_THREADS="1",
                     VRAMSCOPE_LOG="error", **environment))
        self.check(done.returncode, 0, f"{name}: exit status")
        return done.stdout.strip(), trace

    def read(self, *arguments):
        return subprocess.run([str(self.arguments.bin / "vramscope"), *arguments], timeout=300, text=True,
                              stdout=subprocess.PIPE, check=True).stdout

    def check(self, found, expected, what):
        if found != expected:
            self.faults.append(f"{what}: {found}, not {expected}")

    def marks(self, trace):
        events = [json.loads(line) for line in self.read("dump", "--json", trace).splitlines()]
        return events, [event for event in events if event.get("kind") in ("phase_begin", "phase_end", "mark")]


def check_torch(lab):
    printed, trace = lab.run("torch", [lab.arguments.python, str(HERE / "programs" / "nvtx_ranges.py")])
    lab.check(printed, LEVELS, "levels that PyTorch got")
    report = json.loads(lab.read("report", "--json", trace))
    phases = collections.defaultdict(list)
    for phase in report["phases"]:
        if phase["band"] == "allocated_bytes":
            phases[phase["name"]].append(phase)
    for name, (entry, peak, at_exit, ended) in PHASES.items():
        lab.check(len(phases[name]), 1, f"phases {name}")
        for phase in phases[name]:
            lab.check(phase["entry_bytes"], entry * MIB, f"{name}: entry")
            lab.check(phase["peak_bytes"], peak * MIB, f"{name}: peak")
            lab.check(phase["end_ns"] is not None, ended, f"{name}: ended")
            if at_exit is not None:
                lab.check(phase["exit_bytes"], at_exit * MIB, f"{name}: exit")
    lab.check(len(phases["aten::add"]), 3, "operators by emit_nvtx, without their numbers")
    lab.check("iteration #, 8 times" in lab.read("report", trace), True, "a row for all iterations")
    lab.check(report["lifetimes"]["step_source"], "phases", "steps by their names")


def check_without(lab, program):
    """Not where it is switched off, nor where another tool is named."""
    for name, environment in (("off", {"VRAMSCOPE_NVTX": "off"}),
                              ("taken", {"NVTX_INJECTION64_PATH": "/nonexistent/tool.so"})):
        printed, trace = lab.run(name, [program, "once"], **environment)
        lab.check(printed, "-2", f"{name}: level")
        lab.check(lab.marks(trace)[1], [], f"{name}: marks")


def check_crowd(lab, program):
    """What found no room is counted; which that is shows in the handles that the program got."""
    printed, trace = lab.run("crowd", [program, "crowd"], VRAMSCOPE_STACKS="none")
    left_out, unnamed = (int(word) for word in printed.split())
    if not 1000 < left_out < 4000 or not unnamed:
        lab.faults.append(f"crowd: the table was not full: {printed}")
    report, page = json.loads(lab.read("report", "--json", trace)), lab.read("report", trace)
    lab.check(report["hooks"]["nvtx_left_out"], left_out, "ranges of domains without room")
    lab.check(report["hooks"]["nvtx_unnamed"], unnamed, "ranges without their names")
    lab.check("not recorded: no room for their domain's name" in page, True, "the page says so")
    told = [event for event in lab.marks(trace)[1] if event["kind"] == "phase_begin"]
    lab.check(len(told), 6000 - left_out + 10, "ranges recorded")
    summed = sum(phase["count"] for phase in report["phases_summed"])
    listed = sum(phase["kind"] == "marked" and phase["band"] == "direct_bytes" for phase in report["phases"])
    lab.check(listed + summed + report["phases_left_out"], len(told), "phases in the report")


def check_c(lab):
    """False: no header, or no compiler."""
    packages = subprocess.run([lab.arguments.python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
                              stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    headers = sorted(pathlib.Path(packages).glob("nvidia/*/include/nvtx3/nvToolsExt.h"))
    if not headers or shutil.which("cc") is None:
        return False
    program = f"{lab.folder}/nvtx-ranges"
    subprocess.run(["cc", "-O1", f"-I{headers[0].parent.parent}", "-o", program,
                    str(HERE / "programs" / "nvtx_ranges.c"), "-ldl", "-lpthread"], check=True)
    printed, trace = lab.run("c", [program], VRAMSCOPE_STACKS="none")
    lab.check(printed, C_LEVELS, "levels that the program got")
    _, told = lab.marks(trace)
    begun = collections.Counter(event["label"] for event in told if event["kind"] == "phase_begin")
    lab.check(dict(begun), C_PHASES, "phases of the program")
    lab.check(sum(event["kind"] == "phase_end" for event in told), sum(C_PHASES.values()), "ends")
    lab.check([event["label"] for event in told if event["kind"] == "mark"], C_MARKS, "marks of the program")
    report = json.loads(lab.read("report", "--json", trace))
    lab.check([phase["name"] for phase in report["phases"] if phase["end_ns"] is None], [], "phases left open")
    check_without(lab, program)
    check_crowd(lab, program)
    return True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    parser.add_argument("--simgpu", required=True)
    parser.add_argument("--python", default=os.environ.get("VRAMSCOPE_TORCH_PYTHON", ""))
    arguments = parser.parse_args()
    if not arguments.python:
        print("no PyTorch: VRAMSCOPE_TORCH_PYTHON=$(scripts/torch-env)")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="vramscope-nvtx-") as folder:
        lab = Lab(arguments, folder)
        check_torch(lab)
        if not check_c(lab):
            print("not run: the program in C (no NVTX header beside PyTorch, or no compiler)")
    for fault in lab.faults:
        print(f"FAILED: {fault}")
    return 1 if lab.faults else 0


if __name__ == "__main__":
    sys.exit(main())
