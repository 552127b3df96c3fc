# SPDX-License-Identifier: Apache-2.0
"""Out of memory in PyTorch's caching allocator, one kind a case, each in a process of its
own; "NAME healthy" is the same program with the fix.

usage: torch_cases.py "NAME [healthy]" ... (on a device of 4 GiB)
Prints a line of JSON per process: its id, the case, whether a request failed, what PyTorch tells.
"""
import json
import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

MIB = 1 << 20
kept = []


def empty(mib):
    return torch.empty(mib * MIB, dtype=torch.uint8, device="cuda")


def pinned_segment(healthy):
    """A segment that was free as a whole is cut, and a few small blocks stay in it."""
    del_whole = empty(3000)
    del del_whole
    batches = []
    for _ in range(10):
        batches.append(empty(100))
        kept.append(empty(12))  # PINS
    del batches
    if healthy:
        kept.clear()
    kept.append(empty(3200))  # FAILS pinned_segment


def fragmented(healthy):
    """Half of every segment is live: much is free, nothing in one piece."""
    for _ in range(3):
        whole = empty(1000)
        del whole
        kept.append(empty(500))
        kept.append(empty(500))
    del kept[0], kept[1], kept[2]  # one half of each
    if healthy:
        kept.clear()
    kept.append(empty(1200))  # FAILS fragmented


def other_stream(healthy):
    """What a side stream cached is of no use to the main one."""
    side = torch.cuda.current_stream() if healthy else torch.cuda.Stream()
    kept.append(empty(16))
    with torch.cuda.stream(side):
        whole = empty(3000)
        del whole
        kept.append(empty(16))
    kept.append(empty(2000))  # FAILS other_stream


def limit(healthy):
    """The process has a limit of its own, far below the device."""
    torch.cuda.set_per_process_memory_fraction(0.9 if healthy else 0.25)
    kept.append(empty(500))
    kept.append(empty(800))  # FAILS limit


def request_exceeds_device(healthy):
    """One request larger than the device."""
    kept.append(empty(3000 if healthy else 5000))  # FAILS request_exceeds_device


def full(healthy):
    """All is live."""
    for _ in range(3 if healthy else 4):
        kept.append(empty(1000))  # FAILS full


def repaired(healthy):
    """What is cached has the wrong size: PyTorch gives it back and asks again."""
    for mib in (1200, 1500):
        del_soon = empty(mib)
        del del_soon
        if healthy:
            torch.cuda.empty_cache()
    reserved = torch.cuda.memory_reserved()
    kept.append(empty(3000))  # FAILS repaired
    return {"retries": torch.cuda.memory_stats()["num_alloc_retries"],
            "given_back": reserved + 3000 * MIB - torch.cuda.memory_reserved()}


CASES = {case.__name__: case for case in
         (pinned_segment, fragmented, other_stream, limit, request_exceeds_device, full,
          repaired)}


def run(words):
    name, *rest = words.split()
    failed, told = False, None
    try:
        told = CASES[name](rest == ["healthy"])
    except torch.cuda.OutOfMemoryError:
        failed = True
    print(json.dumps({"pid": os.getpid(), "case": words, "failed": failed, "told": told}), flush=True)
    os._exit(1 if failed else 0)


def main():
    for words in sys.argv[1:]:
        child = os.fork()
        if child == 0:
            run(words)
        os.waitpid(child, 0)


main()
