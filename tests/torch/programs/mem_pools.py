# SPDX-License-Identifier: Apache-2.0
"""Pools of the program's own, used in every way that can and that cannot be told from outside,
each in a process of its own.

usage: mem_pools.py NAME ...
Prints a line of JSON per process: its id, the case, and at the mark the segments of PyTorch's
snapshot; "missing" where this PyTorch has no such pools.
"""
import ctypes
import json
import os
import sys
import threading
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

MIB = 1 << 20
kept = []
warnings.filterwarnings("ignore")


def empty(mib):
    kept.append(torch.empty(mib * MIB, dtype=torch.uint8, device="cuda"))


def new_pool():
    kept.append(torch.cuda.MemPool())
    return kept[-1]


def used():
    """Blocks before, in and after a use; what the pool freed is taken from it again."""
    pool, other = new_pool(), new_pool()
    empty(30)
    with torch.cuda.use_mem_pool(pool):
        empty(40)
        del kept[-1]
        empty(25)
    with torch.cuda.use_mem_pool(other):
        empty(50)
    pool.snapshot()
    empty(60)
    with torch.cuda.use_mem_pool(pool):
        empty(70)


def failed():
    """A use that an exception ends."""
    try:
        with torch.cuda.use_mem_pool(new_pool()):
            empty(30)
            raise KeyError
    except KeyError:
        empty(40)


def decorated():
    @torch.cuda.use_mem_pool(new_pool())
    def work():
        empty(30)

    work()
    empty(40)


def other_thread():
    """Another thread asks while this one uses a pool."""
    with torch.cuda.use_mem_pool(new_pool()):
        empty(30)
        thread = threading.Thread(target=empty, args=(40,))
        thread.start()
        thread.join()
        empty(50)


def dropped():
    """The pool is gone, a block of it is not."""
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        empty(30)
    del pool
    empty(40)


def nested():
    first, second = new_pool(), new_pool()
    with torch.cuda.use_mem_pool(first):
        empty(30)
        with torch.cuda.use_mem_pool(second):
            empty(40)
        empty(50)
    empty(60)


def by_hand():
    """The program begins the use itself, by functions that nobody can watch."""
    pool = new_pool()
    torch._C._cuda_beginAllocateCurrentThreadToPool(0, pool.id)
    empty(30)
    torch._C._cuda_endAllocateToPool(0, pool.id)
    empty(40)


def in_capture():
    """A use within a capture that has a pool of its own."""
    pool, graph = new_pool(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        empty(30)
        with torch.cuda.use_mem_pool(pool):
            empty(40)
        empty(50)
    kept.append(graph)


def captured_into():
    """A capture into a pool of the program's own."""
    pool, graph = new_pool(), torch.cuda.CUDAGraph()
    with torch.cuda.use_mem_pool(pool):
        empty(30)
    with torch.cuda.graph(graph, pool=pool.id):
        empty(40)
    kept.append(graph)
    empty(50)


def compiled():
    """torch.compile's graph trees warm up in the pool of their graphs."""
    work = torch.compile(lambda x: (x + 1) * 2, backend="cudagraphs")
    for _ in range(3):
        work(torch.ones(8 * MIB, device="cuda"))
    empty(30)


CASES = {case.__name__: case for case in
         (used, failed, decorated, other_thread, dropped, nested, by_hand, in_capture,
          captured_into, compiled)}


def snapshot():
    return [{"address": s["address"], "pool": list(s["segment_pool_id"])}
            for s in torch.cuda.memory_snapshot()]


def run(name):
    line = {"pid": os.getpid(), "case": name}
    if hasattr(torch.cuda, "MemPool"):
        CASES[name]()
        line["segments"] = snapshot()
        ctypes.CDLL(None).vramscope_mark(b"instant")
    else:
        line["missing"] = True
    print(json.dumps(line), flush=True)
    os._exit(0)


for case in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        run(case)
    os.waitpid(child, 0)
