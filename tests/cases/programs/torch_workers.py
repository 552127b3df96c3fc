# SPDX-License-Identifier: Apache-2.0
"""A training loop whose DataLoader's workers keep what they read.

usage: torch_workers.py MIB [dies]    (MIB of host memory that a worker keeps of each sample; with
"dies" one worker is killed from outside)
"""
import os
import signal
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from torch.utils.data import DataLoader, Dataset

SAMPLES, BATCH = 64, 4


class Samples(Dataset):
    def __init__(self, mib, dies):
        self.mib, self.dies, self.kept = mib, dies, []

    def __len__(self):
        return SAMPLES

    def __getitem__(self, index):
        self.kept.append(b"x" * (self.mib << 20))
        if self.dies and index == SAMPLES // 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return torch.full((1024,), float(index))


def main():
    model = torch.nn.Linear(1024, 16).cuda()
    for batch in DataLoader(Samples(int(sys.argv[1]), sys.argv[2:] == ["dies"]), batch_size=BATCH, num_workers=2):
        model(batch.cuda()).sum().backward()
        model.zero_grad()


main()
