# SPDX-License-Identifier: Apache-2.0
"""A DataLoader whose workers each touch the device; "healthy": only the program does.

usage: torch_loader.py WORKERS [healthy]
Prints a line of JSON: its process id, those of the workers, and what of the device is in use
while all of them are there.
"""
import json
import os
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

HEALTHY = "healthy" in sys.argv[2:]
# NVML is asked about once a second: a context that comes alone is known for what it is.
APART_S = 2.5


class Samples(torch.utils.data.Dataset):
    def __init__(self, workers):
        self.workers = workers

    def __len__(self):
        return 2 * self.workers

    def __getitem__(self, index):
        sample = torch.zeros(1024)
        if not HEALTHY:
            sample = sample.cuda().cpu()  # TOUCHES
        return sample


def wait_turn(worker):
    time.sleep(APART_S * (worker if not HEALTHY else 0))


def main():
    workers = int(sys.argv[1])
    kept = torch.zeros(2 << 20, dtype=torch.uint8, device="cuda")
    time.sleep(0 if HEALTHY else APART_S)
    batches = iter(torch.utils.data.DataLoader(
        Samples(workers), batch_size=1, num_workers=workers, worker_init_fn=wait_turn,
        multiprocessing_context="spawn", persistent_workers=True))
    for _ in range(workers):
        next(batches)
    time.sleep(0 if HEALTHY else APART_S)
    free, total = torch.cuda.mem_get_info()
    print(json.dumps({"pid": os.getpid(), "workers": [worker.pid for worker in batches._workers],
                      "used": total - free, "kept": kept.numel()}), flush=True)


if __name__ == "__main__":
    main()
