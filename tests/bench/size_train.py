# SPDX-License-Identifier: Apache-2.0
"""The event stream that `scripts/bench size` measures: a small transformer in training.
size_train.py fixed|varying STEPS EVENTS_PER_SECOND. In "varying" each batch has a length
of its own. The loop waits at each step's end, as a program that waits for its device does,
so that it makes about so many events a second; 0: it does not wait."""
import os
import random
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "torch", "programs"))

import torch
import torch.nn.functional as F
from transformer import Model

VOCABULARY, WIDTH, BATCH, LENGTH, LAYERS = 512, 64, 8, 64, 4
EVENTS_PER_STEP = 800  # about: allocations and frees of the caching allocator in one step


def train(shape, steps, rate):
    model = Model(VOCABULARY, WIDTH, LAYERS).cuda()
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
