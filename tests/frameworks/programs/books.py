# SPDX-License-Identifier: Apache-2.0
"""What the programs here share: moments at which the simulated device's own books
are written down, for compare.py to look up in the trace.

A moment is written to the file named by FRAMEWORKS_LOG, one JSON object a line,
so that what the program prints stays its own. At a moment no other thread may be
inside a CUDA call.
"""
import ctypes
import json
import os
import time

MIB = 1 << 20


def device_used(device=0):
    """Bytes in use on the device, by the books of the simulated driver in this process."""
    driver = ctypes.CDLL("libcuda.so.1")
    driver.simgpu_device_used.restype = ctypes.c_uint64
    driver.simgpu_device_used.argtypes = [ctypes.c_int]
    used = driver.simgpu_device_used(device)
    if used == (1 << 64) - 1:
        raise RuntimeError("the simulated driver has no such device")
    return used


def moment(name, **expected):
    """Writes down the device's use, and what else the trace has to say then (columns of
    `vramscope timeline`, without their _bytes)."""
    line = {"name": name, "time_ns": time.monotonic_ns(), "device": 0,
            "expected": {"device": device_used(), **expected}}
    with open(os.environ["FRAMEWORKS_LOG"], "a", encoding="ascii") as log:
        print(json.dumps(line), file=log)


def torch_moment(name, unbacked=0):
    """A moment with PyTorch's own figures. UNBACKED: bytes of its segments that have only
    an address then."""
    import torch
    torch.cuda.synchronize()
    reserved = torch.cuda.memory_reserved()
    stats = torch.cuda.memory_stats()
    moment(name, allocated=torch.cuda.memory_allocated(), reserved=reserved,
           backed=reserved - unbacked, unbacked=unbacked,
           max_allocated=torch.cuda.max_memory_allocated(),
           max_reserved=torch.cuda.max_memory_reserved(),
           framework_events=stats["allocation.all.allocated"] + stats["allocation.all.freed"])
    print(f"{name}: allocated {torch.cuda.memory_allocated()} of {reserved}")
