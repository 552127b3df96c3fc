# SPDX-License-Identifier: Apache-2.0
"""What the programs here share: checks against PyTorch's own statistics, and the
closing line that a traced run is compared with.

The line is a JSON list with one object per device: what memory_stats said last.
finish() then ends the process at once, so that no tensor freed on the way out
changes what the line says.
"""
import json
import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

torch.set_num_threads(1)

MIB = 1 << 20
CANNOT = 77
_failures = []


def check(what, got, wanted=True):
    """Remembers a difference; finish() fails the program if there was any."""
    if got != wanted:
        _failures.append(f"{what}: {got!r}, expected {wanted!r}")


def cannot(why):
    """Ends the program: this PyTorch has not got what it is about."""
    print(why)
    sys.exit(CANNOT)


def stats(device=0):
    return torch.cuda.memory_stats(device)


def allocated(device=0):
    return torch.cuda.memory_allocated(device)


def reserved(device=0):
    return torch.cuda.memory_reserved(device)


def used_bytes(device=0):
    """What the device itself says is in use, by every process."""
    free, total = torch.cuda.mem_get_info(device)
    return total - free


def device_figures(device):
    now = stats(device)
    return {
        "rank": int(os.environ.get("RANK", "0")),
        "allocated": allocated(device),
        "reserved": reserved(device),
        "max_allocated": torch.cuda.max_memory_allocated(device),
        "max_reserved": torch.cuda.max_memory_reserved(device),
        "alloc_count": now.get("allocation.all.allocated", 0),
        "free_count": now.get("allocation.all.freed", 0),
        "segment_count": now.get("segment.all.allocated", 0),
    }


def check_consistency():
    """What holds after any program: peaks are no lower than what is there now."""
    for device in range(torch.cuda.device_count()):
        figures = device_figures(device)
        check(f"device {device}: allocated fits in reserved",
              figures["allocated"] <= figures["reserved"])
        check(f"device {device}: peaks are peaks",
              figures["max_allocated"] >= figures["allocated"]
              and figures["max_reserved"] >= figures["reserved"])


def finish():
    """Prints the figures and ends the process: 0 when every check held, else 1."""
    torch.cuda.synchronize()
    check_consistency()
    for failure in _failures:
        print(f"WRONG {failure}", file=sys.stderr)
    sys.stdout.flush()
    line = json.dumps([device_figures(i) for i in range(torch.cuda.device_count())]) + "\n"
    os.write(1, line.encode())  # one write: the ranks of a job share the pipe
    sys.stderr.flush()
    os._exit(1 if _failures else 0)
