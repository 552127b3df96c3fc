# SPDX-License-Identifier: Apache-2.0
"""expandable_segments: segments that grow and shrink by mapping physical memory
into one reservation; the device sees exactly what is mapped."""
import os

os.environ.setdefault("PYTORCH_ALLOC_CONF", "expandable_segments:True")
os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", os.environ["PYTORCH_ALLOC_CONF"])

import figures
import torch


def grow_and_shrink():
    torch.zeros(1, device="cuda")
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    base_used, base_reserved = figures.used_bytes(), figures.reserved()
    blocks = [torch.zeros(6 * figures.MIB, dtype=torch.uint8, device="cuda") for _ in range(8)]
    figures.check("grown by what is reserved", figures.used_bytes() - base_used,
                  figures.reserved() - base_reserved)
    segments = [s for s in torch.cuda.memory_snapshot() if s["segment_type"] == "large"]
    figures.check("one expandable segment", len(segments), 1)
    figures.check("it says so", all(s["is_expandable"] for s in segments))
    blocks[0].fill_(7)
    figures.check("mapped memory holds what was written", int(blocks[0][123].cpu()) in (0, 7))
    del blocks[2:]
    torch.cuda.empty_cache()
    figures.check("shrunk by what was unmapped", figures.used_bytes() - base_used,
                  figures.reserved() - base_reserved)
    return blocks


def main():
    kept = grow_and_shrink()
    kept.append(torch.empty(100, device="cuda"))
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        kept.append(torch.empty(3 * figures.MIB, device="cuda"))
    figures.check("everything is expandable",
                  all(s["is_expandable"] for s in torch.cuda.memory_snapshot()))
    figures.finish()


main()
