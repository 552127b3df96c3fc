# SPDX-License-Identifier: Apache-2.0
"""A small real training loop: what `scripts/quickstart --torch` traces."""
import torch
import torch.nn.functional as F


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.attention = torch.nn.MultiheadAttention(width, 8, batch_first=True)
        self.wide = torch.nn.Linear(width, 4 * width)
        self.narrow = torch.nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(x, x, x, need_weights=False)[0]
        return x + self.narrow(F.gelu(self.wide(x)))


def main():
    torch.set_num_threads(1)
    model = torch.nn.Sequential(*[Block(256) for _ in range(4)]).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    losses = []
    for _ in range(10):
        batch = torch.randn(16, 128, 256, device="cuda")
        loss = model(batch).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
    print(f"peak allocated {torch.cuda.max_memory_allocated()} bytes, "
          f"peak reserved {torch.cuda.max_memory_reserved()} bytes")


if __name__ == "__main__":
    main()
