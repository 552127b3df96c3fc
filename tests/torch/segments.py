#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the segments and blocks that a trace has at given instants against
torch.cuda.memory._snapshot() taken there: addresses, sizes, streams and pools, what is
allocated, what waits for a stream and what is free.

usage: segments.py --bin DIR --simgpu SCRIPT [--python PYTHON] [--alloc-conf CONF] --instants N
Exit status: 0 equal, 1 different, 77 no PyTorch here.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SKIPPED = 77
PROGRAM = pathlib.Path(__file__).parent / "programs" / "segments.py"
SHOWN = 20


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    parser.add_argument("--simgpu", required=True)
    parser.add_argument("--python", default=os.environ.get("VRAMSCOPE_TORCH_PYTHON", ""))
    parser.add_argument("--alloc-conf", default="")
    parser.add_argument("--instants", required=True, type=int)
    return parser.parse_args()


def run_traced(arguments, folder, snapshots):
    environment = dict(os.environ, OMP_NUM_THREADS="1", VRAMSCOPE_LOG="warn")
    if arguments.alloc_conf:
        environment["PYTORCH_CUDA_ALLOC_CONF"] = arguments.alloc_conf
        environment["PYTORCH_ALLOC_CONF"] = arguments.alloc_conf
    command = [str(arguments.bin / "vramscope"), "run", "-o", f"{folder}/trace.vscope", "--",
               arguments.simgpu, "--devices", "1", "--memory", "16G", "--", arguments.python,
               str(PROGRAM), str(arguments.instants), str(snapshots)]
    return subprocess.run(command, env=environment, timeout=1500, check=False).returncode


def layouts_of(arguments, trace):
    """Ours: one object per instant, a line each."""
    command = [str(arguments.bin / "vramscope"), "dump", "--json", "--segments-at", "instant *",
               str(trace)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


STATES = {"active_allocated": "allocated", "active_pending_free": "pending", "inactive": "free"}


def pool_kind(pool):
    """PyTorch's: of a graph (their numbers differ from ours), or the program's own."""
    graph, user = pool
    return "graph" if graph else f"mem_pool {user}" if user else "default"


def kind_of(segment):
    if segment["pool"] is None:
        return "unknown"
    return f"mem_pool {segment['pool']}" if segment["mem_pool"] else "graph" if segment["pool"] else "default"


def theirs(snapshot):
    return {(s["address"], s["bytes"]): (s["stream"], pool_kind(s["pool"]),
                                         [(address, size, STATES[state])
                                          for address, size, state in s["blocks"]])
            for s in snapshot["segments"]}


def ours(layout):
    return {(s["address"], s["bytes"]): (s["stream"], kind_of(s),
                                         [(b["address"], b["bytes"], b["state"])
                                          for b in s["blocks"]])
            for s in layout["segments"]}


def pools_split(layout, snapshot):
    """Segments that we have in one pool are in one of PyTorch's."""
    pool_of = {s["address"]: tuple(s["pool"]) for s in snapshot["segments"]}
    pools = {}
    for segment in layout["segments"]:
        pools.setdefault((segment["mem_pool"], segment["pool"]), set()).add(pool_of.get(segment["address"]))
    return [f"pool {pool} is PyTorch's {sorted(map(str, known))}" for pool, known in pools.items()
            if len(known) > 1]


def band_faults(layout, snapshot):
    blocks = [(tuple(s["pool"]) != (0, 0), STATES[state], size)
              for s in snapshot["segments"] for _, size, state in s["blocks"]]
    wanted = {"cached_bytes": sum(size for _, state, size in blocks if state != "allocated"),
              "pending_bytes": sum(size for _, state, size in blocks if state == "pending"),
              "private_pool_bytes": sum(size for private, state, size in blocks
                                        if private and state == "free")}
    if layout["pending_bytes"] is None:  # right after a capture: what waits is not known
        wanted.update(pending_bytes=None, private_pool_bytes=None)
    return [f"{name} is {layout[name]}, not {bytes_}" for name, bytes_ in wanted.items()
            if layout[name] != bytes_]


def allocated_only(segments):
    return {key: (stream, pool, [block for block in blocks if block[2] == "allocated"])
            for key, (stream, pool, blocks) in segments.items()}


def differences(layout, snapshot):
    if layout["at"] != snapshot["at"]:
        return [f"{layout['at']}: expected {snapshot['at']}"]
    found, expected = ours(layout), theirs(snapshot)
    if layout["pending_bytes"] is None:  # what waits is not known: it looks free
        found, expected = allocated_only(found), allocated_only(expected)
    faults = [] if layout["known"] else ["is uncertain"]
    faults += [f"segment {s} is not PyTorch's" for s in found if s not in expected]
    faults += [f"segment {s} is missing" for s in expected if s not in found]
    faults += [f"segment {s}: {found[s]}, expected {expected[s]}" for s in found
               if s in expected and found[s] != expected[s]]
    faults += pools_split(layout, snapshot) + band_faults(layout, snapshot)
    return [f"{snapshot['at']}: {fault}" for fault in faults]


def main():
    arguments = parse_arguments()
    if not arguments.python:
        print("no PyTorch: set VRAMSCOPE_TORCH_PYTHON (scripts/torch-env prints it)")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="vramscope-segments-") as folder:
        snapshots = pathlib.Path(folder, "snapshots.jsonl")
        status = run_traced(arguments, folder, snapshots)
        if status != 0:
            print(f"the program exited with {status}")
            return 1
        wanted = [json.loads(line) for line in snapshots.read_text(encoding="utf-8").splitlines()]
        traces = list(pathlib.Path(folder).rglob("*.vscope"))
        layouts = layouts_of(arguments, traces[0]) if len(traces) == 1 else []
    faults = [f"traces: {len(traces)}"] if len(traces) != 1 else []
    if len(layouts) != arguments.instants or len(wanted) != arguments.instants:
        faults.append(f"instants: {len(layouts)} ours, {len(wanted)} PyTorch's")
    unknown = sum(layout["pending_bytes"] is None for layout in layouts)
    if unknown > arguments.instants // 10:
        faults.append(f"{unknown} instants at which what is pending is not known")
    for layout, snapshot in zip(layouts, wanted):
        faults += differences(layout, snapshot)
    for fault in faults[:SHOWN]:
        print(f"DIFFERENT {fault[:1000]}")
    segments = sum(len(snapshot["segments"]) for snapshot in wanted)
    print(f"{len(layouts)} instants, {segments} segments compared, {len(faults)} different")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
