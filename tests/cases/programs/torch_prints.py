# SPDX-License-Identifier: Apache-2.0
"""Loops that print what is allocated at each step's end, each in a process of its own.

usage: torch_prints.py NAME ...
  between    most of a step's memory is gone again when it prints; the steps are marked
  unmarked   the same, without marks
  healthy    what the steps hold is there when it prints; the steps are marked
Prints a line of JSON per process: its id, the case, the largest of its prints, PyTorch's own peak.
"""
import ctypes
import json
import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

MIB = 1 << 20
STEPS, PEAK_STEP = 12, 7


def empty(mib):
    return torch.empty(mib * MIB, dtype=torch.uint8, device="cuda")


def activations(large):
    first = empty(100)
    second = empty(400 if large else 200)  # MAKES THE PEAK
    del first
    return second


def run(name):
    mark = ctypes.CDLL(None).vramscope_step
    mark.argtypes, mark.restype = [ctypes.c_uint64], None
    weights = empty(50)
    batch = held = None
    prints = []
    for step in range(STEPS):
        if name != "unmarked":
            mark(step)
        if name == "healthy":
            held = empty(600) if held is None else held
        batch = empty(10)
        output = activations(step == PEAK_STEP) if name != "healthy" else empty(20)
        del output, batch
        prints.append(torch.cuda.memory_allocated())
    print(json.dumps({"pid": os.getpid(), "case": name, "printed": max(prints),
                      "peak": torch.cuda.max_memory_allocated()}), flush=True)
    del weights
    os._exit(0)


for case in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        run(case)
    os.waitpid(child, 0)
