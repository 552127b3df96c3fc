# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own memory history and its snapshot file: the trace it keeps agrees
with the statistics it keeps."""
import os
import pickle
import tempfile

import figures
import torch


def replayed(trace):
    """Bytes allocated and reserved after the entries of one device's trace."""
    live, reserved_bytes = {}, 0
    for entry in trace:
        action, address, size = entry["action"], entry.get("addr"), entry["size"]
        if action == "alloc":
            live[address] = size
        elif action == "free_completed":
            live.pop(address, None)
        elif action in ("segment_alloc", "segment_map"):
            reserved_bytes += size
        elif action in ("segment_free", "segment_unmap"):
            reserved_bytes -= size
    return live, reserved_bytes


def main():
    torch.cuda.memory._record_memory_history(max_entries=10000)
    tensors = [torch.empty(n * 300 * 1024, device="cuda") for n in range(1, 6)]
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        other = torch.empty(5_000_000, device="cuda")
    other.record_stream(torch.cuda.current_stream())
    del other, tensors[2]
    torch.cuda.synchronize()
    tensors.append(torch.empty(7, device="cuda"))
    path = os.path.join(tempfile.mkdtemp(), "snapshot.pickle")
    torch.cuda.memory._dump_snapshot(path)
    with open(path, "rb") as file:
        snapshot = pickle.load(file)
    os.unlink(path)
    os.rmdir(os.path.dirname(path))
    live, reserved_bytes = replayed(snapshot["device_traces"][0])
    segments = snapshot["segments"]
    figures.check("segments are what is reserved", sum(s["total_size"] for s in segments),
                  figures.reserved())
    figures.check("the history reserves the same", reserved_bytes, figures.reserved())
    figures.check("the history keeps the tensors", len(live), len(tensors))
    figures.check("frames were recorded",
                  any("frames" in entry for entry in snapshot["device_traces"][0]))
    torch.cuda.memory._record_memory_history(enabled=None)
    figures.finish()


main()
