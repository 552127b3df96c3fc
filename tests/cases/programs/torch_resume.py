# SPDX-License-Identifier: Apache-2.0
"""Two ranks resume from a checkpoint that the first one wrote from its device; "healthy": each loads
it to its own.

usage: python -m torch.distributed.run --nproc-per-node 2 torch_resume.py FILE [healthy]
Prints a line of JSON per rank: its process id, and what PyTorch has reserved on each device.
"""
import json
import os
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
import torch.distributed as dist

MIB = 1 << 20
APART_S = 2.5  # NVML is asked about once a second


def load(path, rank, healthy):
    target = {"map_location": f"cuda:{rank}"} if healthy else {}
    return torch.load(path, **target)  # LOADS


def main():
    path, healthy = sys.argv[1], "healthy" in sys.argv[2:]
    rank = int(os.environ["RANK"])
    dist.init_process_group("gloo")
    torch.cuda.set_device(rank)
    kept = torch.zeros(300 * MIB, dtype=torch.uint8, device="cuda")
    if rank == 0:
        torch.save(kept[:100 * MIB].clone(), path)
    time.sleep(APART_S)
    dist.barrier()
    if rank == 1:
        weights = load(path, rank, healthy)
        kept[:weights.numel()].copy_(weights)
        del weights
    dist.barrier()
    torch.cuda.mem_get_info()  # as any program does that looks at its devices
    time.sleep(APART_S)
    line = json.dumps({"pid": os.getpid(), "rank": rank,
                       "reserved": [torch.cuda.memory_reserved(device) for device in range(2)]})
    os.write(1, f"{line}\n".encode())  # at once: the ranks share it
    dist.barrier()
    os._exit(0)


main()
