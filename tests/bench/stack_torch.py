# SPDX-License-Identifier: Apache-2.0
"""What one program of PyTorch's takes, for comparison with and without a trace:
nanoseconds per event of an alloc/free loop 20 Python frames deep, and seconds
per training step of a small transformer. With --recorder the loop is timed under
PyTorch's own recorder of allocations too, in turns with the loop alone.

  stack_torch.py [--recorder]        prints one JSON object"""
import json
import os
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "torch", "programs"))

import torch
import torch.nn.functional as F
from transformer import Model

torch.set_num_threads(1)
FRAMES, PAIRS, BATCHES, TURNS = 20, 300, 20, 8
WIDTH, LENGTH, BATCH, VOCABULARY = 128, 64, 8, 512
WARM_STEPS, STEPS = 5, 300
SETTLE_S = 4  # a collector starts and reads the symbols of PyTorch once: on a small machine, beside us


def tenth(values):
    """What other programs do to this one is not what is asked."""
    return sorted(values)[len(values) // 10]


def pairs():
    """A short batch is seldom interrupted."""
    taken = []
    for _ in range(BATCHES):
        began = time.perf_counter_ns()
        for _ in range(PAIRS):
            block = torch.empty(1000, device="cuda")
            del block
        taken.append((time.perf_counter_ns() - began) / (2 * PAIRS))
    return taken


def deep(levels):
    return deep(levels - 1) if levels else pairs()


def loop():
    return deep(FRAMES - 4)  # <module>, main, time_loops, pairs; deep(0) is among the levels


def time_loops(with_recorder):
    taken = {}
    kinds = [("alone", None)]
    if with_recorder:
        kinds += [("recorder_python", "python"), ("recorder_all", "all")]
    for _ in range(TURNS):
        for name, stacks in kinds:
            if stacks is not None:
                torch.cuda.memory._record_memory_history(stacks=stacks, max_entries=4 * PAIRS)
            taken.setdefault(name, []).extend(loop())
            if stacks is not None:
                torch.cuda.memory._record_memory_history(enabled=None)
    return {name: tenth(values) for name, values in taken.items()}


def time_steps():
    model = Model(VOCABULARY, WIDTH, layers=4).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    seconds = []
    for step in range(WARM_STEPS + STEPS):
        if step == WARM_STEPS:
            time.sleep(SETTLE_S)
        began = time.perf_counter()
        tokens = torch.randint(0, VOCABULARY, (BATCH, LENGTH), device="cuda")
        loss = F.cross_entropy(model(tokens).view(-1, VOCABULARY), tokens.view(-1))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        seconds.append(time.perf_counter() - began)
    return tenth(seconds[WARM_STEPS:])


def main():
    torch.empty(1, device="cuda")
    step = time_steps()
    figures = time_loops("--recorder" in sys.argv)
    stats = torch.cuda.memory_stats()
    events = stats["allocation.all.allocated"] + stats["allocation.all.freed"]
    print(json.dumps(dict(figures, step=step, events=events)))
    sys.stdout.flush()
    os._exit(0)


main()
