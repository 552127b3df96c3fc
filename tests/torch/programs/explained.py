# SPDX-License-Identifier: Apache-2.0
"""Runs real PyTorch out of memory and prints what people would paste; its own figures at that
moment go to the file named second: explained.py WAY FIGURES"""
import json
import pprint
import sys
import traceback

import torch

MIB = 1 << 20
WAY, FIGURES = sys.argv[1:]
kept = []


def blocks(count, mib):
    return [torch.empty(mib * MIB, dtype=torch.uint8, device="cuda") for _ in range(count)]


def in_pieces():
    """One segment of 6 GiB, a third of it free in holes of 64 MiB."""
    blocks(1, 6 << 10)
    kept.extend(blocks(96, 64))
    del kept[::3]


def request(mib):
    kept.extend(blocks(1, mib))


def fill():
    while True:
        request(512)


def limited():
    torch.cuda.set_per_process_memory_fraction(0.25)
    fill()


def pieces():
    in_pieces()
    request(2048)


def too_large():
    torch.empty((2, 1 << 34), dtype=torch.uint8, device="cuda")


def absurd():
    torch.empty(1 << 58, dtype=torch.int64, device="cuda")


def overflow():
    torch.empty(1 << 60, dtype=torch.int64, device="cuda")


def host():
    torch.empty(1 << 50, dtype=torch.uint8)


def summary():
    in_pieces()
    print(torch.cuda.memory_summary())


def abbreviated():
    in_pieces()
    print(torch.cuda.memory_summary(abbreviated=True))


def stats():
    in_pieces()
    pprint.pprint(torch.cuda.memory_stats())


def figures():
    free, total = torch.cuda.mem_get_info()
    return {"allocated_bytes": torch.cuda.memory_allocated(), "reserved_bytes": torch.cuda.memory_reserved(),
            "free_bytes": free, "total_bytes": total}


def main():
    told = {}
    try:
        globals()[WAY]()
    except RuntimeError:
        told = figures() if WAY not in ("host", "absurd", "overflow") else {}
        traceback.print_exc(file=sys.stdout)
    else:
        told = {name: value for name, value in figures().items() if name[:4] not in ("free", "tota")}
    with open(FIGURES, "w", encoding="ascii") as out:
        json.dump(told, out)


main()
