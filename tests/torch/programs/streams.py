# SPDX-License-Identifier: Apache-2.0
"""Several streams sharing tensors: record_stream keeps a freed block from reuse
until the other stream has come past it."""
import figures
import torch

SIZE = 3 * figures.MIB  # elements: blocks of their own


def main():
    main_stream = torch.cuda.current_stream()
    side = [torch.cuda.Stream(), torch.cuda.Stream(priority=-1)]
    for round_number in range(3):
        shared = torch.empty(SIZE, device="cuda")
        results = []
        for stream in side:
            stream.wait_stream(main_stream)
            with torch.cuda.stream(stream):
                results.append(shared * 2)
            shared.record_stream(stream)
        before = figures.stats()["active_bytes.all.current"]
        size = figures.stats()["allocated_bytes.all.current"]
        del shared
        figures.check(f"round {round_number}: freed is no longer allocated",
                      figures.allocated() < size)
        figures.check(f"round {round_number}: active never below allocated",
                      figures.stats()["active_bytes.all.current"] >= figures.allocated()
                      and figures.stats()["active_bytes.all.current"] <= before)
        for stream in side:
            main_stream.wait_stream(stream)
        torch.cuda.synchronize()
        torch.empty(1, device="cuda")  # lets the allocator look at its events
        figures.check(f"round {round_number}: nothing pending",
                      figures.stats()["active_bytes.all.current"], figures.allocated())
        del results
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    kept = torch.ones(SIZE, device="cuda") + 1
    end.record()
    end.synchronize()
    figures.check("events are ordered", start.elapsed_time(end) >= 0)
    figures.check("kept is allocated", figures.allocated() >= kept.numel() * 4)
    figures.finish()


main()
