# SPDX-License-Identifier: Apache-2.0
"""backend:cudaMallocAsync: every tensor is a stream-ordered allocation, and the
statistics are those of the device's pool. Run with PYTORCH_ALLOC_CONF unset or
set to this backend: it cannot be chosen later than at import."""
import os

os.environ.setdefault("PYTORCH_ALLOC_CONF", "backend:cudaMallocAsync")
os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", os.environ["PYTORCH_ALLOC_CONF"])

import figures
import torch


def main():
    figures.check("the backend", torch.cuda.memory.get_allocator_backend(), "cudaMallocAsync")
    blocks = [torch.empty(5 * figures.MIB, dtype=torch.uint8, device="cuda") for _ in range(4)]
    figures.check("allocated counts the tensors", figures.allocated() >= 20 * figures.MIB)
    figures.check("reserved holds them", figures.reserved() >= figures.allocated())
    before = figures.reserved()
    del blocks[1:]
    torch.cuda.synchronize()
    figures.check("freed is no longer allocated", figures.allocated() < 10 * figures.MIB)
    figures.check("the pool keeps what was freed", figures.reserved(), before)
    torch.cuda.empty_cache()
    figures.check("trimming gives it back", figures.reserved() < before)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        other = torch.empty(3 * figures.MIB, dtype=torch.uint8, device="cuda")
    other.record_stream(torch.cuda.current_stream())
    layer = torch.nn.Linear(128, 128).cuda()
    layer(torch.randn(8, 128, device="cuda")).sum().backward()
    figures.check("peaks are real", torch.cuda.max_memory_allocated() >= 20 * figures.MIB)
    figures.finish()


main()
