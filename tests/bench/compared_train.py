# SPDX-License-Identifier: Apache-2.0
"""The program that `scripts/bench compared` runs under one tool after the other: a small
transformer in training beside memory of every kind, each of a size that nothing else has.
Prints one line of JSON: seconds per step by the clock and of the program's processor time, and
how many blocks PyTorch made and gave back."""
import argparse
import ctypes
import json
import os
import signal
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "torch", "programs"))

import numpy
import torch
import torch.nn.functional as F
from transformer import Model

WIDTH, LENGTH, BATCH, VOCABULARY, WARM_UP = 128, 64, 8, 512, 5


def train(steps):
    """Seconds of each step, by the clock and of all threads' processor time."""
    model = Model(VOCABULARY, WIDTH, layers=4).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    clock, processor = [], []
    for _ in range(steps):
        began, used = time.perf_counter(), time.process_time()
        tokens = torch.randint(0, VOCABULARY, (BATCH, LENGTH), device="cuda")
        F.cross_entropy(model(tokens).view(-1, VOCABULARY), tokens.view(-1)).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        clock.append(time.perf_counter() - began)
        processor.append(time.process_time() - used)
    return clock[WARM_UP:], processor[WARM_UP:]


def tenth(values):
    """What other programs do to this one is not what is asked."""
    return sorted(values)[len(values) // 10]


def take_tensor(size):
    return torch.empty(size, dtype=torch.uint8, device="cuda")


def take_array(size):
    return numpy.ones(size, dtype=numpy.uint8)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--library", required=True, help="of tests/layers: takes device memory")
    parser.add_argument("--bytes", type=int, nargs=3, required=True, metavar=("TENSOR", "ARRAY", "LIBRARY"))
    parser.add_argument("--record", choices=("python", "all"), help="by PyTorch itself")
    parser.add_argument("--save", help="where PyTorch's recording goes at the end")
    parser.add_argument("--last", type=int, nargs=2, metavar=("TENSOR", "ARRAY"),
                        help="taken at the end, and then SIGKILL")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.record:
        torch.cuda.memory._record_memory_history(stacks=arguments.record)
    kept = [take_tensor(arguments.bytes[0]), take_array(arguments.bytes[1])]
    if ctypes.CDLL(arguments.library).owner_take(ctypes.c_size_t(arguments.bytes[2])) != 0:
        raise SystemExit("the library got no memory")
    clock, processor = train(arguments.steps)
    if arguments.last:
        kept += [take_tensor(arguments.last[0]), take_array(arguments.last[1])]
        os.kill(os.getpid(), signal.SIGKILL)
    if arguments.save:
        torch.cuda.memory._dump_snapshot(arguments.save)
    stats = torch.cuda.memory_stats()
    print(json.dumps({"step": tenth(clock), "processor": tenth(processor),
                      "events": stats["allocation.all.allocated"] + stats["allocation.all.freed"]}), flush=True)


if __name__ == "__main__":
    main()
