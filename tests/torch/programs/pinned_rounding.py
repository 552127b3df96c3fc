# SPDX-License-Identifier: Apache-2.0
"""Pinned memory of PyTorch's host cache, where only requests up to 1 MiB are rounded: one of
300 KiB and one of 5 MiB and a page. Prints a line of JSON with what PyTorch says of it."""
import json
import os

import torch

KIB = 1 << 10
keep = [torch.zeros(size, dtype=torch.uint8).pin_memory() for size in (300 * KIB, 5124 * KIB)]
statistics = torch._C._cuda_hostMemoryStats()
print(json.dumps({"pid": os.getpid(), "allocated": statistics["allocated_bytes"]["current"]}), flush=True)
os._exit(0)
