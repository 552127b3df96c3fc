# SPDX-License-Identifier: Apache-2.0
"""Training steps under PyTorch's own recorder of allocations. Writes its entries,
in order, as JSON, and marks in our trace where it began and ended.

  recorded.py OUTPUT STEPS"""
import ctypes
import json
import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
WIDTH, LENGTH, BATCH, VOCABULARY = 32, 16, 4, 64
vramscope = ctypes.CDLL(None)


class Doubled(torch.autograd.Function):
    """Its backward is Python, and runs in a thread of autograd's."""

    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(context, gradient):
        return (lambda g: [piece for piece in (g * 2,)][0])(gradient)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, 4, batch_first=True)
        self.norm = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        y = self.norm(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return Doubled.apply(x + self.mlp(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def batches(count):
    for _ in range(count):
        yield torch.randint(0, VOCABULARY, (BATCH, LENGTH), device="cuda")


def deep(levels, function):
    return deep(levels - 1, function) if levels else function()


def step(model, optimizer, tokens):
    logits = model(tokens)
    loss = F.cross_entropy(logits.view(-1, VOCABULARY), tokens.view(-1))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(
        set_to_none=True,
    )
    kept = [torch.empty(n, device="cuda") for n in range(1, 4)]
    kept.sort(key=lambda tensor: tensor.new_empty(8).numel())
    deep(30, lambda: torch.empty(100, device="cuda"))
    return {index: tensor.clone() for index, tensor in enumerate(kept)}


def train(steps):
    model = Model().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for tokens in batches(1):
        step(model, optimizer, tokens)
    torch.cuda.memory._record_memory_history(context="all", stacks="all", max_entries=1_000_000)
    vramscope.vramscope_mark(b"recorder begins")
    for tokens in batches(steps):
        step(model, optimizer, tokens)
    vramscope.vramscope_mark(b"recorder ends")


def main():
    train(int(sys.argv[2]))
    snapshot = torch.cuda.memory._snapshot()
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump([{"action": entry["action"], "address": entry.get("addr", 0),
                    "frames": [[f["name"], f["filename"], f["line"]] for f in entry["frames"]]}
                   for entry in snapshot["device_traces"][0]], file)
    sys.stdout.flush()
    os._exit(0)


main()
