# SPDX-License-Identifier: Apache-2.0
"""Training and inference loops that are healthy, and with --leak KIND have a leak.

usage: trains.py "SHAPE [--leak KIND] [--steps N]" ...
"""
import argparse
import json
import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
import torch._dynamo  # with the first optimizer step else, in each process
import torch.nn as nn
import torch.utils.checkpoint

torch.set_num_threads(1)
torch.backends.cudnn.enabled = False

WIDTH = 64
AT_ONCE = 4
kept = []


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


class Model(nn.Module):
    def __init__(self, checkpoints=False):
        super().__init__()
        self.checkpoints = checkpoints
        self.first = nn.Linear(WIDTH, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(4))
        self.head = nn.Linear(WIDTH, 10)

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            if self.checkpoints:
                x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)
            else:
                x = block(x)
        return self.head(x)


def batch(size=8):
    return torch.randn(size, WIDTH, device="cuda"), torch.zeros(size, dtype=torch.long, device="cuda")


def leak(kind, loss, model):
    if kind == "block":
        kept.append(torch.empty(100, device="cuda"))  # LEAK block
    elif kind == "graph":
        kept.append(model(batch()[0]).sum())  # never given to backward(): all of its graph stays
    elif kind == "loss":
        kept.append(loss.detach().clone())  # LEAK loss
    elif kind == "pinned":
        kept.append(torch.empty(5000, dtype=torch.uint8).pin_memory())  # LEAK pinned
    elif kind == "stream":
        kept.append(make_stream())  # LEAK stream


def make_stream():
    import ctypes
    stream = ctypes.c_void_p()
    status = ctypes.CDLL("libcuda.so.1").cuStreamCreate(ctypes.byref(stream), 1)
    assert status == 0, status
    return stream


def one_batch(model, size=8, parts=1, between=None):
    """`between` is called behind the forward pass."""
    inputs, targets = batch(size)
    loss = nn.functional.cross_entropy(model(inputs), targets) / parts
    if between is not None:
        between()
    loss.backward()
    return loss


def evaluate(model, batches=5):
    model.eval()
    right = torch.zeros((), device="cuda")
    with torch.no_grad():
        for _ in range(batches):
            inputs, targets = batch()
            right = right + (model(inputs).argmax(-1) == targets).sum()
    model.train()
    return right.item()


def train(arguments):
    torch.manual_seed(0)
    shape = arguments.shape
    model = Model(shape == "checkpoints").cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1) if shape == "sgd" \
        else torch.optim.AdamW(model.parameters())
    parts = 4 if shape == "accumulation" else 1
    for step in range(arguments.steps):
        size = int(torch.randint(1, 64, ())) if shape == "shapes" else 8
        for _ in range(parts):
            loss = one_batch(model, size, parts, optimizer.zero_grad if shape == "late" else None)
        optimizer.step()
        if shape != "late":
            optimizer.zero_grad(set_to_none=True)
        leak(arguments.leak, loss, model)
        del loss
        if shape == "evaluation" and step % 10 == 9:
            evaluate(model)


def infer(arguments):
    model = Model().cuda().eval()
    with torch.no_grad():
        for _ in range(arguments.steps):
            inputs, _ = batch()
            loss = model(inputs).softmax(-1).max()
            leak(arguments.leak, loss, model)
            del inputs, loss


def epochs(arguments):
    """The outputs of an epoch's steps are kept until its end."""
    model = Model().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(2):
        outputs = []
        for _ in range(40):
            loss = one_batch(model)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            outputs.append(loss.detach().clone() if arguments.leak else loss.item())  # LEAK epoch
        print(float(torch.as_tensor(outputs).mean()))
        del outputs


def joined(arguments):
    """Predictions are gathered on the device: each time old and new are there at once."""
    model = Model().cuda().eval()
    predictions = None
    with torch.no_grad():
        for _ in range(arguments.steps):
            new = model(batch(64)[0])
            if not arguments.leak:
                new = new.cpu()
            predictions = new if predictions is None else torch.cat([predictions, new])  # LEAK joined


def run(words):
    parser = argparse.ArgumentParser()
    parser.add_argument("shape")
    parser.add_argument("--leak", default="")
    parser.add_argument("--steps", type=int, default=30)
    arguments = parser.parse_args(words)
    special = {"infer": infer, "epochs": epochs, "joined": joined}
    special.get(arguments.shape, train)(arguments)
    torch.cuda.synchronize()


def main():
    """Each case in a process of its own, forked before the device is touched: PyTorch
    is imported once. Prints which process ran which case."""
    failed, running = False, {}
    waiting = sys.argv[1:]
    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            case = waiting.pop(0)
            child = os.fork()
            if child == 0:
                run(case.split())
                sys.exit(0)
            running[child] = case
        child, status = os.wait()
        failed = failed or status != 0
        print(json.dumps({"pid": child, "case": running.pop(child), "status": status}), flush=True)
    sys.exit(failed)


main()
