#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A segment pinned by few live blocks: the report names it, what it holds and the
line that keeps it; the twin that drops the blocks has no such finding.

usage: pinned.py --bin DIR --simgpu SCRIPT [--python PYTHON]
Exit status: 0 as it should be, 1 not, 77 no PyTorch here.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

import real_torch

MIB = 1 << 20
PROGRAM = pathlib.Path(__file__).parent / "programs" / "pinned.py"


def page_and_report(arguments, mode):
    """The report of one run: the page, and JSON."""
    environment = dict(os.environ, OMP_NUM_THREADS="1", VRAMSCOPE_LOG="warn")
    with tempfile.TemporaryDirectory(prefix="vramscope-pinned-") as folder:
        trace = f"{folder}/trace.vscope"
        subprocess.run([str(arguments.bin / "vramscope"), "run", "-o", trace, "--",
                        arguments.simgpu, "--devices", "1", "--memory", "4G", "--",
                        arguments.python, str(PROGRAM), mode],
                       env=environment, timeout=500, check=True)
        return real_torch.page_of(arguments, trace), real_torch.report_of(arguments, trace)


def line_of(text):
    lines = PROGRAM.read_text(encoding="utf-8").splitlines()
    return f"{PROGRAM.name}:{1 + next(i for i, line in enumerate(lines) if text in line)}"


def faults_of_pinned(page, report):
    faults = []
    ooms = report["ooms"]
    if len(ooms) != 1 or ooms[0]["fragmentation"] is None:
        return [f"ooms: {report['ooms']}"]
    then = ooms[0]["fragmentation"]
    pinned = then["pinned_segments"]
    if then["pinned_count"] != 1 or len(pinned) != 1:
        return [f"pinned: {pinned}"]
    expected = {"bytes": 3000 * MIB, "live_bytes": 120 * MIB, "live_count": 10,
                "held_bytes": 2880 * MIB}
    faults += [f"{name}: {pinned[0][name]}, expected {value}" for name, value in expected.items()
               if pinned[0][name] != value]
    places = {(frame["file"], frame["line"]) for site in report["sites"]
              if site["stack"] in pinned[0]["stacks"] for frame in site["frames"]
              if frame["kind"] == "python"}
    where = line_of("return torch.empty")
    if not any(f"{os.path.basename(file)}:{line}" == where for file, line in places):
        faults.append(f"the stacks {pinned[0]['stacks']} do not have {where}: {places}")
    if "2.93 GiB segment kept by 120 MiB in 10 live blocks, 2.81 GiB of it free" not in page:
        faults.append(f"the page does not say so:\n{page}")
    return faults


def faults_of_twin(page, report):
    faults = [f"out of memory: {oom}" for oom in report["ooms"] if not oom["repaired"]]
    faults += [f"pinned: {oom['fragmentation']}" for oom in report["ooms"]
               if oom["fragmentation"] is not None]
    if "segment kept by" in page:
        faults.append(f"the page has a finding:\n{page}")
    return faults


def check(arguments):
    faults = faults_of_pinned(*page_and_report(arguments, "keep"))
    faults += faults_of_twin(*page_and_report(arguments, "drop"))
    for fault in faults:
        print(f"WRONG {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(real_torch.run_test(check))
