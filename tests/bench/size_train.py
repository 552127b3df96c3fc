# SPDX-License-Identifier: Apache-2.0
"""The event stream that `scripts/bench size` measures: a small transformer in training.
size_train.py fixed|varying STEPS EVENTS_PER_SECOND. In "varying" each batch has a length
of its own. The loop waits at each step's end, as a program that waits for its device does,
so that it makes about so many events a second; 0: it does not wait."""
import random
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

VOCABULARY, WIDTH, BATCH, LENGTH, LAYERS = 512, 64, 8, 64, 4
EVENTS_PER_STEP = 800  # about: allocations and frees of the caching allocator in one step


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, 4, batch_first=True)
        self.first_norm, self.second_norm = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        y = self.first_norm(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.mlp(self.second_norm(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def train(shape, steps, rate):
    model = Model().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    due = time.monotonic()
    for _ in range(steps):
        length = LENGTH if shape == "fixed" else random.randint(LENGTH // 4, 2 * LENGTH)
        tokens = torch.randint(0, VOCABULARY, (BATCH, length), device="cuda")
        logits = model(tokens)
        F.cross_entropy(logits.view(-1, VOCABULARY), tokens.view(-1)).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        now = time.monotonic()
        due = max(due + (EVENTS_PER_STEP / rate if rate else 0), now)
        time.sleep(due - now)


random.seed(1)
torch.manual_seed(0)
train(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
