# SPDX-License-Identifier: Apache-2.0
"""torch-memory-saver: memory given back and taken again behind PyTorch's allocator, at
addresses that stay. usage: memory_saver.py preload|torch (its two ways to hook)"""
import os
import sys

import books
import torch
from torch_memory_saver import torch_memory_saver as saver

saver.hook_mode = sys.argv[1]

outside = torch.full((30 * books.MIB,), 3, dtype=torch.uint8, device="cuda")
with saver.region(tag="weights", enable_cpu_backup=True):
    weights = torch.empty(100 * books.MIB, dtype=torch.uint8, device="cuda")
with saver.region(tag="cache"):
    cache = torch.empty(200 * books.MIB, dtype=torch.uint8, device="cuda")
weights[:10].copy_(torch.arange(10, dtype=torch.uint8))
books.torch_moment("made")
full = books.device_used()

saver.pause(tag="cache")
books.torch_moment("cache paused", unbacked=full - books.device_used())
saver.pause(tag="weights")
books.torch_moment("both paused", unbacked=full - books.device_used())
print("given back", full - books.device_used())

meanwhile = torch.empty(50 * books.MIB, dtype=torch.uint8, device="cuda")
books.torch_moment("another tensor meanwhile", unbacked=300 * books.MIB)
del meanwhile
torch.cuda.empty_cache()

saver.resume(tag="weights")
books.torch_moment("weights resumed", unbacked=full - books.device_used())
saver.resume(tag="cache")
books.torch_moment("both resumed")
print("as before", books.device_used() == full, weights[:10].cpu().tolist())
del cache
torch.cuda.empty_cache()
books.torch_moment("cache dropped")

if sys.argv[1] == "torch":
    # At the interpreter's end PyTorch frees the pools, and this mode ends a process that
    # frees one outside of its region.
    sys.stdout.flush()
    os._exit(0)
