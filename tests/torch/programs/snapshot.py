# SPDX-License-Identifier: Apache-2.0
"""Blocks of several sizes on two streams, an emptied cache, a request that fails; at the
end PyTorch's own snapshot is kept.

usage: snapshot.py OUT: pickles the snapshot and ends at once, so that nothing is freed after it.
"""
import os
import pickle
import sys

import figures
import torch


def work():
    kept, other = [], torch.cuda.Stream()
    for turn in range(6):
        sizes = [(1 + (index * 7919 + turn * 104729) % 3000) * 1000 for index in range(12)]
        blocks = [torch.empty(size, device="cuda", dtype=torch.uint8) for size in sizes]
        with torch.cuda.stream(other):
            blocks.append(torch.empty(3 * figures.MIB, device="cuda", dtype=torch.uint8))
        blocks[3].record_stream(other)
        kept += blocks[turn % 3::3]
        del blocks
        if turn == 3:
            kept = kept[::2]
            torch.cuda.empty_cache()
    try:
        kept.append(torch.empty(1 << 40, device="cuda", dtype=torch.uint8))
    except torch.cuda.OutOfMemoryError:
        pass
    return kept


def main():
    torch.cuda.memory._record_memory_history(max_entries=100000, context=None)
    kept = work()
    with open(sys.argv[1], "wb") as out:
        pickle.dump(torch.cuda.memory._snapshot(), out)
    print(f"{len(kept)} blocks", flush=True)
    os._exit(0)


main()
