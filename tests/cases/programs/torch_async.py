# SPDX-License-Identifier: Apache-2.0
"""Out of memory with backend:cudaMallocAsync, whose cache is a pool of the driver, one kind a
case, each in a process of its own; "NAME healthy" is the same program with the fix.

usage: torch_async.py "NAME [healthy]" ... (on a device of 4 GiB)
Prints a line of JSON per process: its id, the case, whether a request failed, what was allocated
and reserved just before it, and after the case, by PyTorch.
"""
import json
import os
import sys

os.environ.update(PYTORCH_ALLOC_CONF="backend:cudaMallocAsync",
                  PYTORCH_CUDA_ALLOC_CONF="backend:cudaMallocAsync", OMP_NUM_THREADS="1")

import torch

MIB = 1 << 20
kept = []
told = {}


def empty(kib):
    return torch.empty(kib << 10, dtype=torch.uint8, device="cuda")


def figures():
    torch.cuda.synchronize()
    return {"allocated": torch.cuda.memory_allocated(), "reserved": torch.cuda.memory_reserved(),
            "free": torch.cuda.mem_get_info()[0]}


def fill(times, freed_kib, kept_kib):
    """Live blocks, and what was freed between them."""
    batches = []
    for _ in range(times):
        batches.append(empty(freed_kib))
        kept.append(empty(kept_kib))
    batches.clear()


def trimmed(healthy):
    """What the pool keeps lies in pieces: PyTorch trims it and asks again."""
    fill(6, 300 << 10, 200 << 10)
    if healthy:
        torch.cuda.empty_cache()
    told["before"] = figures()
    kept.append(empty(1100 << 10))  # FAILS trimmed


def pages(healthy):
    """Every page of the pool has a small live block in it: there is nothing to trim."""
    fill(1500, 1792, 256)
    if healthy:
        kept.clear()
    told["before"] = figures()
    kept.append(empty(1100 << 10))  # FAILS pages


CASES = {case.__name__: case for case in (trimmed, pages)}


def run(words):
    name, *rest = words.split()
    failed = False
    try:
        CASES[name](rest == ["healthy"])
    except torch.cuda.OutOfMemoryError:
        failed = True
    print(json.dumps({"pid": os.getpid(), "case": words, "failed": failed, **told,
                      "after": figures()}), flush=True)
    os._exit(1 if failed else 0)


for words in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        run(words)
    os.waitpid(child, 0)
