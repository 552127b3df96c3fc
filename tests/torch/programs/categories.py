# SPDX-License-Identifier: Apache-2.0
"""Trainings of which the sizes of parameters, gradients and optimizer state are known,
each in a process of its own that ends without giving anything back.

usage: categories.py CASE ...
Prints a line of JSON per process: its id, the case, what its tensors take in blocks.
"""
import json
import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
import torch._dynamo  # with the first optimizer step else, in each process
from torch import nn
import torch.utils.checkpoint

torch.set_num_threads(1)
BLOCK = 512
WIDTH = 192  # every tensor is below 1 MiB: blocks are cut to size


class Layer(nn.Module):
    def __init__(self, **where):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH, **where)
        self.up, self.down = (nn.Linear(WIDTH, 2 * WIDTH, **where),
                              nn.Linear(2 * WIDTH, WIDTH, **where))

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


class Model(nn.Module):
    def __init__(self, checkpoints=False, **where):
        super().__init__()
        self.checkpoints = checkpoints
        self.layers = nn.ModuleList(Layer(**where) for _ in range(3))
        self.head = nn.Linear(WIDTH, 10, **where)

    def forward(self, x):
        for layer in self.layers:
            x = (torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False)
                 if self.checkpoints else layer(x))
        return self.head(x)


def in_blocks(tensors):
    """Bytes of the blocks of device tensors."""
    sizes = (t.untyped_storage().nbytes() for t in tensors if t is not None and t.is_cuda)
    return sum(-(-size // BLOCK) * BLOCK for size in sizes)


def state_of(optimizer):
    return [value for state in optimizer.state.values() for value in state.values()
            if torch.is_tensor(value)]


def make(case):
    on_device = case == "built_on_device"
    model = Model(case == "checkpoints", device="cuda") if on_device \
        else Model(case == "checkpoints").cuda()
    if case == "sgd":
        return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return model, torch.optim.AdamW(model.parameters(), foreach=case != "one_by_one")


def tell(case, model, optimizer=None):
    """What the tensors take, while they are there."""
    parameters = list(model.parameters())
    return {"pid": os.getpid(), "case": case, "parameters": in_blocks(parameters),
            "gradients": in_blocks(p.grad for p in parameters),
            "optimizer_state": in_blocks(state_of(optimizer)) if optimizer else 0}


def make_peak():
    torch.empty(64 << 20, dtype=torch.uint8, device="cuda")


def finish(said):
    torch.cuda.synchronize()
    os.write(1, f"{json.dumps(said)}\n".encode())  # in one piece: others write there, too
    os._exit(0)


def peak_in_backward(weight):
    """The next pass peaks when a new gradient is there, not yet added to the one that stays."""
    def peak(gradient):
        make_peak()
        hook.remove()
    hook = weight.register_hook(peak)


def train(case):
    model, optimizer = make(case)
    parts = 3 if "accumulation" in case else 1
    for step in range(6):
        if step != 0:
            optimizer.zero_grad(set_to_none="kept" not in case)
        for part in range(parts):
            if case.endswith("_peak") and (step, part) == (5, 2):
                peak_in_backward(model.layers[1].up.weight)
            loss = model(torch.randn(16, WIDTH, device="cuda")).square().mean()
            loss.backward()
        optimizer.step()
    if not case.endswith("_peak"):
        make_peak()  # while all gradients are there
    finish(tell(case, model, optimizer))


def infer(case):
    model = Model().cuda().eval()
    table = torch.randn(100, WIDTH, device="cuda")  # given back at the end only, by the same thread
    with torch.no_grad():
        for _ in range(6):
            print(float(model(torch.randn(16, WIDTH, device="cuda")).sum()), file=sys.stderr)
    make_peak()
    said = dict(tell(case, model), held=in_blocks([table]))
    del table
    finish(said)


def main():
    children = []
    for case in sys.argv[1:]:
        child = os.fork()
        if child == 0:
            (infer if case == "inference" else train)(case)
        children.append(child)
    failed = [child for child in children if os.waitpid(child, 0)[1] != 0]
    sys.exit(1 if failed else 0)


main()
