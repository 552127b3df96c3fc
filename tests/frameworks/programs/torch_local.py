# SPDX-License-Identifier: Apache-2.0
"""PyTorch where no CUDA symbol is in the global scope (run through load_local.py): some
training, a side stream, a pinned copy, the cache emptied."""
import books
import torch
import torch.nn.functional as F

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.GELU(),
                            torch.nn.Linear(1024, 256)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
books.torch_moment("model")
for _ in range(3):
    x = torch.randn(512, 256, device="cuda")
    F.mse_loss(model(x), x).backward()
    optimizer.step()
    optimizer.zero_grad()
books.torch_moment("trained")

side = torch.cuda.Stream()
with torch.cuda.stream(side):
    large = torch.empty(64 * books.MIB, dtype=torch.uint8, device="cuda")
pinned = torch.arange(1000, pin_memory=True)
on_device = pinned.to("cuda", non_blocking=True)
books.torch_moment("side stream")
print("copied", int(on_device.cpu().sum()))
del large, x
torch.cuda.empty_cache()
books.torch_moment("emptied")
