# SPDX-License-Identifier: Apache-2.0
"""DataLoader workers and pinned batches: forked workers never touch the device,
pinned memory never counts as the device's."""
import figures
import torch
from torch.utils.data import DataLoader, Dataset


class Numbers(Dataset):
    def __len__(self):
        return 24

    def __getitem__(self, index):
        return torch.full((1024,), float(index))


def main():
    base = figures.allocated()
    total = 0.0
    for round_number in range(2):
        loader = DataLoader(Numbers(), batch_size=6, num_workers=2, pin_memory=True)
        for batch in loader:
            figures.check("batches are pinned", batch.is_pinned())
            on_device = batch.to("cuda", non_blocking=True)
            torch.cuda.current_stream().synchronize()
            total += float(on_device.cpu()[:, 0].sum())
    figures.check("every sample arrived, twice", total, 2.0 * sum(range(24)))
    del on_device, batch
    figures.check("nothing is left on the device", figures.allocated(), base)
    pinned = torch.empty(3 * figures.MIB, dtype=torch.uint8, pin_memory=True)
    figures.check("pinned memory is host memory", figures.allocated(), base)
    kept = pinned.cuda()
    figures.check("its copy is not", figures.allocated() >= base + kept.numel())
    figures.finish()


if __name__ == "__main__":
    main()
