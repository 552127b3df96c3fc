# SPDX-License-Identifier: Apache-2.0
"""A Triton kernel of the program's own, and torch.compile: kernels built here by gcc and
ptxas, loaded as modules, launched through the driver."""
import os

os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"

import books
import torch
import triton
import triton.language as tl


@triton.jit
def add(x, y, out, count, block: tl.constexpr):
    i = tl.program_id(0) * block + tl.arange(0, block)
    inside = i < count
    tl.store(out + i, tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside), mask=inside)


def network(x, w):
    return torch.nn.functional.gelu(x @ w).sum(-1)


def main():
    x = torch.ones(4096, device="cuda")
    out = torch.empty_like(x)
    kernel = add[(4,)](x, x, out, 4096, block=1024)
    books.torch_moment("kernel")
    print("built", sorted(kernel.asm))

    compiled = torch.compile(network)
    w = torch.randn(256, 256, device="cuda", requires_grad=True)
    result = compiled(torch.randn(512, 256, device="cuda"), w)
    books.torch_moment("compiled forward")
    result.sum().backward()
    books.torch_moment("compiled backward")
    print("result", tuple(result.shape), "gradient", tuple(w.grad.shape))
    for _ in range(3):
        compiled(torch.randn(512, 256, device="cuda"), w).sum().backward()
    books.torch_moment("run again")


main()
