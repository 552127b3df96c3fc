#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`vramscope explain` on what real PyTorch prints: its class, and every figure of it as PyTorch's
own functions gave them at that moment, within the rounding that is told.

usage: explained.py --bin DIR --simgpu SCRIPT [--python PYTHON]
Exit status: 0 as expected, 1 not, 77 no PyTorch.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import real_torch

PROGRAM = pathlib.Path(__file__).parent / "programs" / "explained.py"
ASYNC = "backend:cudaMallocAsync"
# what the program does, setting of the allocator, other use of the device, class
CASES = [
    ("fill", "", "", "full"),
    ("fill", "expandable_segments:True", "", "full"),
    ("fill", ASYNC, "", "full"),
    ("fill", "", "5GiB@0s:4711", "other_process"),
    ("pieces", "", "", "fragmented"),
    ("limited", "", "", "limit"),
    ("too_large", "", "", "request_exceeds_device"),
    ("too_large", ASYNC, "", "request_exceeds_device"),
    ("absurd", "", "", "request_exceeds_device"),
    ("overflow", "", "", "request_exceeds_device"),
    ("host", "", "", "host_memory"),
    ("summary", "", "", "unknown"),
    ("abbreviated", "", "", "unknown"),
    ("stats", "", "", "unknown"),
]
FIGURES = {"fill": 4, "pieces": 4, "limited": 4, "too_large": 4, "summary": 2, "abbreviated": 2, "stats": 2}


def paste_of(arguments, folder, way, setting, other):
    """What is printed, and PyTorch's own figures."""
    figures = pathlib.Path(folder) / "figures.json"
    command = [arguments.simgpu, "--memory", "8GiB", *(["--other", other] if other else []), "--",
               arguments.python, PROGRAM, way, figures]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=120,
                          env=dict(os.environ, PYTORCH_CUDA_ALLOC_CONF=setting))
    return done.stdout, json.loads(figures.read_text(encoding="ascii"))


def faults_of(way, wanted, told, figures):
    numbers = told["numbers"]
    if told["class"] != wanted:
        yield f"{told['class']}, not {wanted}: {told['why']}"
    if way == "fill" and numbers.get("requested_bytes") != 512 << 20:
        yield f"asked for {numbers.get('requested_bytes')}"
    compared = [name for name in figures if name in numbers]
    # The driver's pool has no segments to tell of.
    if len(compared) < FIGURES.get(way, 0) - ("cudaMallocAsync" in told["from"]):
        yield f"only {compared} are told"
    for name in compared:
        if abs(numbers[name] - figures[name]) > numbers["rounding_bytes"]:
            yield f"{name} {numbers[name]}, PyTorch says {figures[name]}"


def test(arguments):
    faults = []
    with tempfile.TemporaryDirectory(prefix="vramscope-explained-") as folder:
        for way, setting, other, wanted in CASES:
            text, figures = paste_of(arguments, folder, way, setting, other)
            done = subprocess.run([arguments.bin / "vramscope", "explain", "--json"], input=text,
                                  stdout=subprocess.PIPE, text=True, check=False)
            case = " ".join((way, setting, other)).strip()
            if done.returncode != 0:
                faults.append((case, f"not understood:\n{text}"))
                continue
            faults += [(case, fault) for fault in faults_of(way, wanted, json.loads(done.stdout), figures)]
    return real_torch.tell("explain", len(CASES), faults)


if __name__ == "__main__":
    sys.exit(real_torch.run_test(test))
