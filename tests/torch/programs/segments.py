# SPDX-License-Identifier: Apache-2.0
"""A mixed run of random requests: several streams, record_stream, small and large
blocks, emptied caches, training steps, CUDA graphs with pools of their own. At
random instants PyTorch's snapshot is kept and the trace is marked there.

usage: segments.py INSTANTS FILE: writes one JSON line per instant, with its mark.
"""
import ctypes
import json
import os
import random
import sys

import figures
import torch

SEED = 20260117
OPERATIONS_PER_INSTANT = 12
# There PyTorch 2.15 fails (INTERNAL ASSERT, cudaMalloc_count > 0) where the cache is emptied after
# a pool of the program's own was used, as the beginning of a capture does: first these, then pools.
EXPANDABLE = "expandable_segments:True" in os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "")


def snapshot_line(name):
    segments = [{"address": s["address"], "bytes": s["total_size"], "stream": s["stream"],
                 "pool": s["segment_pool_id"],
                 "blocks": [(b["address"], b["size"], b["state"]) for b in s["blocks"]]}
                for s in torch.cuda.memory._snapshot()["segments"]]
    return json.dumps({"at": name, "segments": segments}) + "\n"


class Run:
    def __init__(self):
        self.random = random.Random(SEED)
        self.streams = [torch.cuda.current_stream(), torch.cuda.Stream(), torch.cuda.Stream()]
        self.tensors, self.graphs, self.pools = [], [], []
        self.model = torch.nn.Sequential(torch.nn.Linear(96, 257), torch.nn.ReLU(),
                                         torch.nn.Linear(257, 33)).cuda()
        self.optimizer = torch.optim.Adam(self.model.parameters())
        self.own_pools = not EXPANDABLE
        self.seen = {"pending": 0, "private": 0, "holes": 0, "own_pools": 0}

    def size(self):
        """Bytes: below a block, of the small pool, of a shared and of an own segment."""
        low, high = self.random.choice([(1, 2000), (2000, 1 << 20), (1 << 20, 10 << 20),
                                        (10 << 20, 50 << 20)])
        return self.random.randint(low, high)

    def allocate(self):
        with torch.cuda.stream(self.random.choice(self.streams)):
            self.tensors.append(torch.empty(self.size(), dtype=torch.uint8, device="cuda"))

    def free(self):
        if self.tensors:
            del self.tensors[self.random.randrange(len(self.tensors))]

    def use_on_other_stream(self):
        stream = self.random.choice(self.streams[1:])
        with torch.cuda.stream(self.streams[0]):
            tensor = torch.empty(self.size(), dtype=torch.uint8, device="cuda")
        stream.wait_stream(self.streams[0])
        with torch.cuda.stream(stream):
            tensor.add_(1)
        tensor.record_stream(stream)

    def may_empty(self):
        return not (EXPANDABLE and self.own_pools)

    def empty_cache(self):
        if self.may_empty():
            torch.cuda.empty_cache()

    def train(self):
        rows = self.random.randint(1, 4000)
        self.model(torch.randn(rows, 96, device="cuda")).sum().backward()
        self.optimizer.step()
        self.optimizer.zero_grad()

    def capture(self):
        if not self.may_empty():
            return
        graph, static = torch.cuda.CUDAGraph(), torch.ones(self.size(), device="cuda")
        pool = self.graphs[-1][0].pool() if self.graphs and self.random.random() < 0.3 else None
        with torch.cuda.graph(graph, pool=pool):
            kept = static + 1
            kept = kept * 2
            if self.random.random() < 0.5:
                self.fork(kept)
        graph.replay()
        self.graphs.append((graph, static, kept))
        if len(self.graphs) > 4:
            self.graphs.pop(0)

    def fork(self, tensor):
        """A side stream joins the capture; what it makes is of the capture's pool, too."""
        main, side = torch.cuda.current_stream(), self.streams[1]
        side.wait_stream(main)
        with torch.cuda.stream(side):
            made = tensor + 1
        main.wait_stream(side)
        made.record_stream(main)
        del made

    def use_pool(self):
        """Blocks in a pool of the program's own; what is freed inside and outside goes back to it."""
        if not self.own_pools or not hasattr(torch.cuda, "MemPool"):
            return
        if len(self.pools) < 3:
            self.pools.append(torch.cuda.MemPool())
        pool = self.random.choice(self.pools)
        with torch.cuda.use_mem_pool(pool):
            for _ in range(self.random.randint(1, 3)):
                self.allocate()
            if self.random.random() < 0.5:
                self.free()
        if self.random.random() < 0.2:
            self.pools.remove(pool)

    def operate(self):
        many, some, few = 40, 8, 1
        action = self.random.choices(
            [self.allocate, self.free, self.use_on_other_stream, self.train, self.empty_cache,
             self.capture, self.use_pool], [many, many, some, some, few, few, some])[0]
        action()
        while len(self.tensors) > 120:
            self.free()

    def note(self, line):
        segments = json.loads(line)["segments"]
        states = [state for s in segments for _, _, state in s["blocks"]]
        self.seen["pending"] += "active_pending_free" in states
        self.seen["own_pools"] += any(segment["pool"][1] != 0 for segment in segments)
        self.seen["holes"] += "inactive" in states
        self.seen["private"] += any(tuple(s["segment_pool_id"]) != (0, 0)
                                    for s in torch.cuda.memory_snapshot())


def main():
    instants, path = int(sys.argv[1]), sys.argv[2]
    mark = ctypes.CDLL(None).vramscope_mark
    run = Run()
    with open(path, "w", encoding="utf-8") as out:
        for number in range(instants):
            run.own_pools = run.own_pools or number > instants // 2
            for _ in range(run.random.randint(1, 2 * OPERATIONS_PER_INSTANT)):
                run.operate()
            name = f"instant {number}"
            line = snapshot_line(name)
            mark(name.encode())
            out.write(line)
            run.note(line)
    figures.check("instants with free blocks", run.seen["holes"] > instants // 2)
    figures.check("instants with pending blocks", run.seen["pending"] > instants // 10)
    figures.check("instants with private pools", run.seen["private"] > instants // 4)
    if hasattr(torch.cuda, "MemPool"):
        figures.check("instants with pools of the program's own", run.seen["own_pools"] > instants // 4)
    print(json.dumps(run.seen), flush=True)
    figures.finish()


main()
