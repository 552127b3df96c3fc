# SPDX-License-Identifier: Apache-2.0
"""A MemPool of the program's own: tensors made inside it live in segments of its
own, which go back when the pool does."""
import figures
import torch


def segments_of(pool):
    return [s for s in torch.cuda.memory_snapshot()
            if tuple(s["segment_pool_id"]) == tuple(pool.id)]


def main():
    if not hasattr(torch.cuda, "MemPool"):
        figures.cannot("torch.cuda.MemPool came with PyTorch 2.5")
    outside = torch.empty(5 * figures.MIB, dtype=torch.uint8, device="cuda")
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        inside = torch.empty(9 * figures.MIB, dtype=torch.uint8, device="cuda")
        small = torch.empty(100, device="cuda")
    figures.check("the pool has its segments", len(segments_of(pool)), 2)
    figures.check("they hold what was made inside",
                  sum(s["allocated_size"] for s in segments_of(pool)) >= inside.numel())
    with_pool = figures.reserved()
    del inside
    with torch.cuda.use_mem_pool(pool):
        again = torch.empty(8 * figures.MIB, dtype=torch.uint8, device="cuda")
    figures.check("the pool reuses its own", figures.reserved(), with_pool)
    del again, small, pool
    torch.cuda.empty_cache()
    figures.check("a dropped pool gives its memory back", figures.reserved() < with_pool)
    figures.check("what is outside stays", outside.numel(), 5 * figures.MIB)
    figures.finish()


main()
