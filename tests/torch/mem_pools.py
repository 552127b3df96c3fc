#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which pool a segment is of where the program uses pools of its own: as PyTorch's snapshot says,
or not known; never another one.

usage: mem_pools.py --bin DIR --simgpu SCRIPT [--python PYTHON]
Exit status: 0 as expected, 1 not, 77 no PyTorch, or one without such pools.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import real_torch
import segments

PROGRAM = pathlib.Path(__file__).parent / "programs" / "mem_pools.py"
EXACT = ["used", "failed", "decorated", "other_thread", "dropped"]
# How many segments are not known, at least.
UNCLEAR = {"nested": 1, "by_hand": 2, "in_capture": 1, "captured_into": 1, "compiled": 1}


def layout_of(arguments, trace):
    command = [arguments.bin / "vramscope", "dump", "--json", "--segments-at", "instant", trace]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[0])


def faults_of(name, line, layout, all_unclear):
    theirs = {s["address"]: segments.pool_kind(s["pool"]) for s in line["segments"]}
    ours = {s["address"]: segments.kind_of(s) for s in layout["segments"]}
    if set(theirs) != set(ours):
        return [f"segments {ours}, PyTorch's {theirs}"]
    unclear = [address for address in ours if ours[address] == "unknown"]
    wrong = [address for address in ours if ours[address] not in (theirs[address], "unknown")]
    if name == "captured_into":  # ours is numbered by the capture
        wrong = [address for address in wrong if ours[address] != "graph" or theirs[address] == "default"]
    faults = [f"{ours[address]}, PyTorch says {theirs[address]}" for address in wrong]
    least = 1 if all_unclear else UNCLEAR.get(name, 0)
    if len(unclear) < least or (unclear and least == 0):
        faults.append(f"{len(unclear)} not known, of {ours}, PyTorch's {theirs}")
    if unclear and layout["private_pool_bytes"] is not None:
        faults.append("private_pool_bytes is known")
    return faults


def check(arguments, all_unclear=False):
    wrong, cases = [], EXACT if all_unclear else [*EXACT, *UNCLEAR]
    with tempfile.TemporaryDirectory(prefix="vramscope-pools-") as folder:
        printed = real_torch.run_programs(arguments, folder, "4G", PROGRAM, cases)
        lines = {line["pid"]: line for line in map(json.loads, printed.splitlines())}
        missing = set(cases) - {line["case"] for line in lines.values()}
        if any("missing" in line for line in lines.values()):
            print("torch.cuda.MemPool came with PyTorch 2.5")
            return real_torch.SKIPPED
        for trace in sorted(pathlib.Path(folder).rglob("*.vscope")):
            line = lines.pop(real_torch.report_of(arguments, trace)["process"]["pid"], None)
            if line is not None:
                wrong += [(line["case"], fault) for fault in
                          faults_of(line["case"], line, layout_of(arguments, trace), all_unclear)]
    wrong += [(line["case"], "no trace") for line in lines.values()]
    wrong += [(name, "did not end") for name in missing]
    return real_torch.tell("WRONG", len(cases), wrong)


def check_all(arguments):
    status = check(arguments)
    if status != 0:
        return status
    os.environ["VRAMSCOPE_STACKS"] = "native"  # who asked for a pool's id is then not known
    return check(arguments, all_unclear=True)


if __name__ == "__main__":
    sys.exit(real_torch.run_test(check_all))
