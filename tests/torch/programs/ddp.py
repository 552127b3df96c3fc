# SPDX-License-Identifier: Apache-2.0
"""DistributedDataParallel over gloo, one device a rank. Start with
python -m torch.distributed.run --nproc-per-node 2 ddp.py"""
import figures
import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    device = rank % torch.cuda.device_count()
    torch.cuda.set_device(device)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(128, 256), torch.nn.ReLU(),
                                torch.nn.Linear(256, 10)).cuda()
    wrapped = torch.nn.parallel.DistributedDataParallel(model, device_ids=[device])
    optimizer = torch.optim.AdamW(wrapped.parameters())
    for _ in range(3):
        wrapped(torch.randn(16, 128, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    total = torch.tensor([rank + 1.0]).cuda()
    dist.all_reduce(total)
    figures.check("all_reduce", total.cpu().item(), world * (world + 1) / 2)
    figures.check("memory on this rank's device", figures.allocated(device) > 0)
    dist.barrier()
    dist.destroy_process_group()
    figures.finish()


main()
