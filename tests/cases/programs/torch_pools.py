# SPDX-License-Identifier: Apache-2.0
"""Out of memory around captures of CUDA graphs and the private pools they leave, one kind a
case, each in a process of its own; "NAME healthy" is the same program with the fix.

usage: torch_pools.py "NAME [healthy]" ... (on a device of 4 GiB)
Prints a line of JSON per process: its id, the case, and of a request that failed PyTorch's
message and the segments that its snapshot had then.
"""
import json
import os
import sys
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

MIB = 1 << 20
kept = []
failure = {}
warnings.filterwarnings("ignore", message="The CUDA Graph is empty")


def empty(mib):
    return torch.empty(mib * MIB, dtype=torch.uint8, device="cuda")


def segments():
    return [{"pool": list(segment["segment_pool_id"]), "bytes": segment["total_size"],
             "free": [block["size"] for block in segment["blocks"] if block["state"] == "inactive"],
             "pending": [block["size"] for block in segment["blocks"]
                         if block["state"] == "active_pending_free"]}
            for segment in torch.cuda.memory_snapshot()]


class Attempt:
    """Keeps what PyTorch says where the request fails, and goes on."""

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind is None or not issubclass(kind, torch.cuda.OutOfMemoryError):
            return False
        failure.update(message=str(error), segments=segments())
        return True


def graph_with(work, **options):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, **options):  # MAKES THE POOL
        work()
    kept.append(graph)
    return graph


def temporary_and_output(temporary, output):
    first, second = empty(temporary), empty(output)
    del first
    kept.append(second)


def graph_pool(healthy):
    """A graph's temporaries are free after its capture, for itself alone."""
    graph = graph_with(lambda: temporary_and_output(1500, 1000))
    if healthy:
        graph.reset()
    with Attempt():
        kept.append(empty(2000))  # FAILS graph_pool


def pools_apart(healthy):
    """Each graph has a pool of its own, and temporaries in it."""
    pool = None
    for _ in range(5):
        with Attempt():
            graph = graph_with(lambda: empty(900), pool=pool)  # FAILS pools_apart
        pool = graph.pool() if healthy else None


def pool_gone(healthy):
    """The graph is gone, but a small output of it lives in the large segment of its pool."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):  # MAKES THE POOL pool_gone
        whole = empty(3000)
        del whole
        output = empty(100)
    graph.reset()
    if healthy:
        output = output.cpu()
    kept.append(output)
    with Attempt():
        kept.append(empty(2000))  # FAILS pool_gone


def captured_by_hand(work):
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    kept.append(graph)
    with torch.cuda.stream(stream):
        graph.capture_begin()
        with Attempt():
            work()
        graph.capture_end()


def warm_up_cached(healthy):
    """What the warm-up used is cached when the capture begins, which gives nothing back."""
    batches = [empty(500) for _ in range(5)]
    kept.append(empty(16))
    del batches
    if healthy:
        torch.cuda.empty_cache()
    captured_by_hand(lambda: kept.append(empty(2000)))  # FAILS warm_up_cached


def warm_up_kept(healthy):
    """A small buffer of the warm-up lives in the large segment that it was cut from."""
    whole = empty(3000)
    del whole
    kept.append(empty(100))
    if healthy:
        kept.clear()
        torch.cuda.empty_cache()
        kept.append(empty(100))
    captured_by_hand(lambda: kept.append(empty(2000)))  # FAILS warm_up_kept


def recorded_in_capture(healthy):
    """Blocks that another stream used inside the capture wait for its end."""
    side = torch.cuda.Stream()

    def work():
        for _ in range(3):
            block = empty(1500)  # FAILS recorded_in_capture
            if not healthy:
                block.record_stream(side)
            del block

    captured_by_hand(work)


def beside_capture(healthy):
    """Another stream asks while a capture holds its temporaries."""
    side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    kept.append(graph)
    with torch.cuda.graph(graph, capture_error_mode="relaxed"):  # MAKES THE POOL beside_capture
        main = torch.cuda.current_stream()
        whole = empty(2500)
        del whole
        with torch.cuda.stream(main if healthy else side), Attempt():
            kept.append(empty(1400))  # FAILS beside_capture


def stream_of_capture(healthy):
    """A stream that joined the capture cannot use what its first stream freed."""
    side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    kept.append(graph)
    with torch.cuda.graph(graph):
        main = torch.cuda.current_stream()
        whole = empty(2500)
        del whole
        kept.append(empty(100))
        side.wait_stream(main)
        with torch.cuda.stream(main if healthy else side), Attempt():
            kept.append(empty(2000))  # FAILS stream_of_capture
        main.wait_stream(side)


def mem_pool(healthy):
    """What a pool of the program's own freed is for use_mem_pool alone."""
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):  # MAKES THE POOL mem_pool
        whole = empty(2500)
        del whole
    if not healthy:
        kept.append(pool)
    del pool
    with Attempt():
        kept.append(empty(2000))  # FAILS mem_pool


def mem_pool_gone(healthy):
    """The pool is gone, but a small block lives in the large segment it was cut from."""
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):  # MAKES THE POOL mem_pool_gone
        whole = empty(3000)
        del whole
        small = empty(100)
    if not healthy:
        kept.append(small)
    del pool, small
    with Attempt():
        kept.append(empty(2000))  # FAILS mem_pool_gone


CASES = {case.__name__: case for case in
         (graph_pool, pools_apart, pool_gone, warm_up_cached, warm_up_kept, recorded_in_capture,
          beside_capture, stream_of_capture, mem_pool, mem_pool_gone)}


def run(words):
    name, *rest = words.split()
    CASES[name](rest == ["healthy"])
    print(json.dumps({"pid": os.getpid(), "case": words, **failure}), flush=True)
    os._exit(0)


def main():
    for words in sys.argv[1:]:
        child = os.fork()
        if child == 0:
            run(words)
        os.waitpid(child, 0)


main()
