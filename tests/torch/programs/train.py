# SPDX-License-Identifier: Apache-2.0
"""A small transformer and a small convolutional net, trained: attention, AdamW,
autocast, convolution. --cudnn leaves convolution to PyTorch's default choice."""
import sys

import figures
import torch
import torch.nn as nn
import torch.nn.functional as F
from transformer import Model

VOCABULARY, WIDTH, LENGTH, BATCH = 256, 64, 32, 4


def train_transformer(steps, autocast):
    model = Model(VOCABULARY, WIDTH, layers=2).cuda()
    parameters = sum(p.numel() * p.element_size() for p in model.parameters())
    figures.check("parameters are allocated", figures.allocated() >= parameters)
    optimizer = torch.optim.AdamW(model.parameters())
    after_step = []
    for _ in range(steps):
        tokens = torch.randint(0, VOCABULARY, (BATCH, LENGTH), device="cuda")
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=autocast):
            logits = model(tokens)
            loss = F.cross_entropy(logits.view(-1, VOCABULARY).float(), tokens.view(-1))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        del tokens, logits, loss
        after_step.append(figures.allocated())
    figures.check("steps do not grow", after_step[1], after_step[-1])
    return model, optimizer


def train_convolution():
    net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(),
                        nn.MaxPool2d(2), nn.Conv2d(8, 16, 3), nn.AdaptiveAvgPool2d(1),
                        nn.Flatten(), nn.Linear(16, 10)).cuda()
    output = net(torch.randn(4, 3, 16, 16, device="cuda"))
    figures.check("convolution's output", tuple(output.shape), (4, 10))
    output.sum().backward()
    figures.check("convolution has a gradient", net[0].weight.grad is not None)
    return net


def main():
    torch.manual_seed(0)
    if "--cudnn" not in sys.argv:
        torch.backends.cudnn.enabled = False
    figures.check("a device is there", torch.cuda.is_available())
    kept = train_transformer(4, autocast=False)
    kept += train_transformer(3, autocast=True)
    kept += (train_convolution(),)
    figures.check("the device gave what is reserved",
                  figures.used_bytes() >= figures.reserved())
    figures.finish()


main()
