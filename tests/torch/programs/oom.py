# SPDX-License-Identifier: Apache-2.0
"""Out of memory: repaired by releasing the cache, given up and caught, and by
the program's own limit."""
import figures
import torch


def empty(size):
    return torch.empty(size, dtype=torch.uint8, device="cuda")


def repaired():
    total = torch.cuda.mem_get_info()[1]
    piece = total // 8 // (2 * figures.MIB) * (2 * figures.MIB)
    pieces = [empty(piece) for _ in range(6)]
    del pieces
    whole = empty(6 * piece)
    now = figures.stats()
    figures.check("one retry", now["num_alloc_retries"], 1)
    figures.check("no failure", now["num_ooms"], 0)
    figures.check("six segments freed", now["num_device_free"], 6)
    return whole


def caught(request):
    try:
        empty(request)
    except torch.cuda.OutOfMemoryError as error:
        return str(error)
    return ""


def main():
    whole = repaired()
    message = caught(torch.cuda.mem_get_info()[1])
    figures.check("a failure is told", "out of memory" in message)
    figures.check("it is counted", figures.stats()["num_ooms"], 1)
    del whole
    torch.cuda.empty_cache()
    figures.check("the program goes on", empty(100).numel(), 100)
    torch.cuda.set_per_process_memory_fraction(0.25)
    figures.check("the limit of its own holds",
                  "out of memory" in caught(torch.cuda.mem_get_info()[1] // 2))
    torch.cuda.set_per_process_memory_fraction(1.0)
    kept = empty(30 * figures.MIB)
    figures.check("two failures", figures.stats()["num_ooms"], 2)
    figures.check("kept", kept.numel(), 30 * figures.MIB)
    figures.finish()


main()
