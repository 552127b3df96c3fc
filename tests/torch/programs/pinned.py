# SPDX-License-Identifier: Apache-2.0
"""One segment that takes most of the device is freed, then cut into small blocks of
which a few stay: a large request fails, though most of the device is in the cache.

usage: pinned.py keep|drop: with "drop" nothing stays, and the request succeeds.
"""
import sys

import figures
import torch

WHOLE = 3000 * figures.MIB
BATCH = 100 * figures.MIB


def empty(size):
    return torch.empty(size, dtype=torch.uint8, device="cuda")


def main():
    keep = sys.argv[1] == "keep"
    whole = empty(WHOLE)
    del whole
    kept, batches = [], []
    for _ in range(10):
        batches.append(empty(BATCH))
        kept.append(empty(12 * figures.MIB))
    del batches
    if not keep:
        kept.clear()
    failed = False
    try:
        large = empty(3200 * figures.MIB)
    except torch.cuda.OutOfMemoryError:
        failed = True
    figures.check("the request failed", failed, keep)
    if not failed:
        figures.check("it is there", large.numel(), 3200 * figures.MIB)
    figures.finish()


main()
