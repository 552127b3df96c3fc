# SPDX-License-Identifier: Apache-2.0
"""Problems that users of PyTorch report, one kind a case, each in a process of its own;
"NAME healthy" is the same program with the fix.

usage: torch_known.py "NAME [healthy]" ... (on a device of 4 GiB)
Prints a line of JSON per process: its id, the case, PyTorch's own statistics at its end, and what
the case counted itself.
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
kept, logged = [], []
counted = {}
warnings.filterwarnings("ignore", message="The CUDA Graph is empty")


def empty(mib):
    return torch.empty(mib * MIB, dtype=torch.uint8, device="cuda")


def step(number):
    mark = ctypes.CDLL(None).vramscope_step
    mark.argtypes, mark.restype = [ctypes.c_uint64], None
    mark(number)


class Failing:
    """Goes on behind a request that fails."""

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        return kind is not None and issubclass(kind, torch.cuda.OutOfMemoryError)


def flushed(healthy):
    """What one stream cached is of no use to the other: each flushes the cache, every step."""
    streams = [torch.cuda.current_stream(), torch.cuda.Stream()]
    for number in range(8):
        step(number)
        for stream in streams[:1] * 2 if healthy else streams:
            with torch.cuda.stream(stream):
                block = empty(2000)  # FLUSHES
            del block


def optimizer(healthy):
    """The optimizer makes its state in its first step, when the activations' cache is there."""
    layers = torch.nn.Sequential(*[torch.nn.Linear(8192, 8192, bias=False) for _ in range(4)]).cuda()
    made = (torch.optim.SGD if healthy else torch.optim.Adam)(layers.parameters(), lr=1e-3)
    for parameter in layers.parameters():
        parameter.grad = torch.zeros_like(parameter)
    with Failing():
        made.step()  # FAILS optimizer
    counted["parameters"] = sum(p.numel() * p.element_size() for p in layers.parameters())
    counted["state"] = sum(value.numel() * value.element_size() for state in made.state.values()
                           for value in state.values() if torch.is_tensor(value) and value.is_cuda)
    kept.extend([layers, made])


def gathered(healthy):
    """An evaluation gathers its predictions on the device: each time old and new are there."""
    with Failing():
        whole = torch.empty(0, dtype=torch.uint8, device="cpu" if healthy else "cuda")
        for _ in range(16):
            logits = empty(150)
            whole = torch.cat([whole, logits.cpu() if healthy else logits])  # FAILS gathered
            del logits
        kept.append(whole)


class Widened(torch.autograd.Function):
    """Its backward needs far more than its forward."""

    @staticmethod
    def forward(context, tensor, mib):
        context.mib = mib
        return tensor + 1

    @staticmethod
    def backward(context, gradient):
        workspace = empty(context.mib)  # FAILS backward
        del workspace
        return gradient, None


def backward(healthy):
    """What a backward that failed had made stays while its error is kept."""
    weights = torch.ones(25 * MIB, device="cuda", requires_grad=True)
    errors = []
    for number in range(6):
        loss = Widened.apply(weights * 2, 100 if number != 3 else 3500).square()  # KEPT
        try:
            loss.sum().backward()
        except torch.cuda.OutOfMemoryError as error:
            if not healthy:
                errors.append((error, loss))
        weights.grad = None
        del loss
    kept.append(errors)


def sizes(healthy):
    """One graph a size of input, each with memory of its own, until there is none left. With one
    pool for all, and the largest first, none but the first needs any."""
    pool = None
    with Failing():
        for rows in sorted(range(1, 13), reverse=healthy):
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=pool):
                hidden = empty(250 + 10 * rows)  # FAILS sizes
                kept.append(empty(10))
                del hidden
            kept.append(graph)
            pool = graph.pool() if healthy else None
    counted["graphs"] = sum(isinstance(each, torch.cuda.CUDAGraph) for each in kept)


def saved(healthy):
    """Saving needs blocks of a size that the cache has none of: what is reserved stays up."""
    library = ctypes.CDLL(None)
    batches = [empty(300) for _ in range(4)]
    del batches
    kept.append(empty(100))
    counted["before"] = torch.cuda.memory_reserved()
    library.vramscope_begin(b"save")
    for _ in range(3):
        gathered_shard = empty(500 if not healthy else 200)  # SAVES
        del gathered_shard
    library.vramscope_end()
    counted["after"] = torch.cuda.memory_reserved()


class Partitioned(torch.nn.Module):
    """A layer of which this process has a share: the whole weight is gathered where it is used."""

    def __init__(self, healthy):
        super().__init__()
        self.healthy = healthy
        self.share = torch.nn.Parameter(torch.zeros(WEIGHT // 8, device="cuda"))

    def whole(self):
        weight = torch.empty(WEIGHT, device="cuda")  # GATHERS
        for rank in range(8):
            weight[rank * WEIGHT // 8:(rank + 1) * WEIGHT // 8].copy_(self.share.detach())
        return weight

    def forward(self, batch):
        return Used.apply(batch, self.share, self)


WEIGHT, LAYERS, STEPS = 39321600 // 4, 12, 10


class Used(torch.autograd.Function):
    @staticmethod
    def forward(context, batch, _, layer):
        weight = layer.whole()
        context.layer, context.weight = layer, None if layer.healthy else weight
        return batch + weight[0]

    @staticmethod
    def backward(context, gradient):
        weight = context.layer.whole() if context.weight is None else context.weight
        context.weight = None
        return gradient * weight[0], torch.zeros_like(context.layer.share), None


def training_step(number, healthy):
    step(number)
    output = torch.zeros(256, device="cuda")
    loss = output + number
    for _ in range(4):
        logged.append(loss.clone().cpu() if healthy else loss.clone())  # LOGS


def logged_values(healthy):
    """Each step's values are kept on the device until the epoch is over."""
    for epoch in range(3):
        for number in range(40):
            training_step(epoch * 40 + number, healthy)
        if epoch != 2:
            logged.clear()


def unreleased(healthy):
    """Weights that the forward pass gathered stay until the backward pass of their layer."""
    layers = torch.nn.Sequential(*[Partitioned(healthy) for _ in range(LAYERS)])
    descent = torch.optim.SGD(layers.parameters(), lr=1e-3)
    for number in range(STEPS):
        step(number)
        layers(torch.zeros(4, device="cuda")).sum().backward()
        descent.step()
        descent.zero_grad()
    kept.append(layers)
    counted["weight"] = WEIGHT * 4


def workspaces(healthy):
    """cuBLAS keeps a workspace for each thread's handle and each stream that it is used on; here
    every step uses another stream."""
    os.environ["TORCH_CUBLAS_WORKSPACE_CACHE"] = "1"
    left = torch.zeros(64, 64, device="cuda")
    streams = [torch.cuda.current_stream()] if healthy else [torch.cuda.Stream() for _ in range(24)]

    def multiply():
        for number in range(24):
            step(number)
            with torch.cuda.stream(streams[number % len(streams)]):
                product = left @ left  # MULTIPLIES
            del product

    multiply()
    if not healthy:  # another thread has another handle, and these are more rounds of the program
        other = threading.Thread(target=multiply)
        other.start()
        other.join()
    counted.update(handles=1 if healthy else 2, streams=len(streams),
                   size=torch.backends.cuda.cublas_workspace_size())
    kept.append(left)


CASES = {case.__name__: case for case in
         (flushed, optimizer, gathered, backward, sizes, saved, logged_values, unreleased, workspaces)}


def run(words):
    name, *rest = words.split()
    CASES[name](rest == ["healthy"])
    stats = torch.cuda.memory_stats()
    line = {"pid": os.getpid(), "case": words, "counted": counted,
            "retries": stats["num_alloc_retries"], "ooms": stats["num_ooms"],
            "allocated": stats["allocated_bytes.all.current"],
            "reserved": stats["reserved_bytes.all.current"],
            "peak": stats["allocated_bytes.all.peak"],
            "device_allocs": stats["num_device_alloc"], "device_frees": stats["num_device_free"]}
    print(json.dumps(line), flush=True)
    os._exit(0)


for words in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        run(words)
    os.waitpid(child, 0)
