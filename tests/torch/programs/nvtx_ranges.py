# SPDX-License-Identifier: Apache-2.0
"""Ranges and marks of torch.cuda.nvtx around allocations of known size."""
import os
import threading

import torch
from torch.cuda import nvtx

MIB = 1 << 20


def block(mebibytes):
    return torch.empty(mebibytes * MIB, dtype=torch.uint8, device="cuda")


assert "NVTX_INJECTION64_PATH" not in os.environ
kept = block(4)
levels = [nvtx.range_push("outer"), nvtx.range_push("inner")]
temporary = block(8)
levels.append(nvtx.range_pop())
del temporary
levels += [nvtx.range_pop(), nvtx.range_pop()]  # the last without a push
for i in range(8):
    nvtx.range_push(f"iteration {i}")
    nvtx.range_push("work")
    several = [block(4) for _ in range(3)]
    nvtx.range_pop()
    del several
    nvtx.range_pop()

across = nvtx.range_start("across threads")
nested = block(4)


def end_it():
    nvtx.range_push("in the other thread")
    nvtx.range_end(across)
    nvtx.range_pop()


other = threading.Thread(target=end_it)
other.start()
other.join()
nvtx.range_end(across)  # again
nvtx.range_end(1 << 40)  # never started
nvtx.mark("a mark")
with torch.autograd.profiler.emit_nvtx():
    for _ in range(3):
        torch.add(kept, 1)
nvtx.range_push("never ended")
last = block(4)
print("levels", *levels)
