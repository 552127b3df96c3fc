#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pytorch, of a real PyTorch program on the simulated device, against PyTorch's own
snapshot of the same run, and in the hands of torch.cuda._memory_viz:
test_pytorch_torch.py --bin DIR --simgpu SCRIPT [--expandable]. Exit status: 77 no PyTorch here."""

import argparse
import contextlib
import importlib.util
import io
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile

import snapshot_pickle

PROGRAM = pathlib.Path(__file__).resolve().parents[1] / "torch" / "programs" / "snapshot.py"


def consumer(python):
    """PyTorch's module, from its file: nothing of the rest is needed."""
    where = "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
    folder = subprocess.run([python, "-c", where], capture_output=True, text=True, check=True)
    path = pathlib.Path(folder.stdout.strip(), "cuda", "_memory_viz.py")
    spec = importlib.util.spec_from_file_location("memory_viz", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def record(arguments, python, folder):
    trace, snapshot = folder / "trace.vscope", folder / "snapshot.pickle"
    command = [arguments.bin / "vramscope", "run", "-o", trace, "--", arguments.simgpu, "--memory",
               "16G", "--", python, PROGRAM, snapshot]
    environment = dict(os.environ, OMP_NUM_THREADS="1", VRAMSCOPE_LOG="warn")
    if arguments.expandable:
        environment["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
        environment["PYTORCH_ALLOC_CONF"] = "expandable_segments:True"
    subprocess.run(command, env=environment, timeout=100, check=True)
    with open(snapshot, "rb") as file:
        return trace, pickle.load(file)


def export(arguments, trace, *options):
    done = subprocess.run([arguments.bin / "vramscope", "export", "-f", "pytorch", "-o", "-",
                           *options, trace], stdout=subprocess.PIPE, timeout=100, check=True)
    return snapshot_pickle.load(done.stdout)


def layout(snapshot):
    return sorted((s["address"], s["total_size"], s["stream"], s["segment_type"],
                   s["allocated_size"], s["active_size"], s["is_expandable"],
                   [(b["address"], b["size"], b["state"]) for b in s["blocks"]])
                  for s in snapshot["segments"])


def order(snapshot):
    """Events without their times; those that only PyTorch's own snapshots have are left out."""
    return [(e["action"], e.get("addr"), e["stream"]) for e in snapshot["device_traces"][0]
            if e["action"] != "snapshot"]


def compare_with_pytorch(ours, theirs, expandable):
    assert layout(ours) == layout(theirs), (layout(ours), layout(theirs))
    got, wanted = order(ours), order(theirs)
    for index, (mine, other) in enumerate(zip(got, wanted)):
        assert mine == other, (index, got[index - 3:index + 3], wanted[index - 3:index + 3])
    assert len(got) == len(wanted) > 100, (len(got), len(wanted))
    for mine, other in zip(ours["device_traces"][0], theirs["device_traces"][0]):
        exact = mine["action"].startswith("segment_")
        assert mine["size"] == other["size"] if exact else mine["size"] >= other["size"]
    states = {b["state"] for s in theirs["segments"] for b in s["blocks"]}
    assert states >= {"active_allocated", "inactive"}
    names = {"segment_map", "segment_unmap"} if expandable else {"segment_alloc", "segment_free"}
    assert {action for action, _, _ in got} >= names | {"alloc", "oom"}


def consume(viz, end, peak):
    """What PyTorch's own tools say of the two instants."""
    text = viz.segsum(end)
    assert f"segments: {len(end['segments'])}" in text
    assert viz.trace(end).count(" = cudaMalloc(") == sum(
        entry["action"] == "segment_alloc" for entry in end["device_traces"][0])
    for segments in (False, True):
        assert "add_local_files" in viz.trace_plot(end, plot_segments=segments)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        lines = viz.compare(peak["segments"], end["segments"], format_flamegraph=lambda text: text)
    gone = {s["address"] for s in peak["segments"]} - {s["address"] for s in end["segments"]}
    assert all(str(address) in said.getvalue() for address in gone)
    assert lines.count("only_before;") >= len(gone)
    place = f"{PROGRAM.name}:"
    assert place in viz.memory(end, format_flamegraph=lambda text: text)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    parser.add_argument("--simgpu", required=True)
    parser.add_argument("--expandable", action="store_true")
    arguments = parser.parse_args()
    python = os.environ.get("VRAMSCOPE_TORCH_PYTHON", "")
    if not python:
        print("no PyTorch: set VRAMSCOPE_TORCH_PYTHON (scripts/torch-env prints it)")
        return 77
    with tempfile.TemporaryDirectory(prefix="vramscope-export-") as name:
        trace, theirs = record(arguments, python, pathlib.Path(name))
        end, peak = export(arguments, trace, "--at", "end"), export(arguments, trace)
    compare_with_pytorch(end, theirs, arguments.expandable)
    consume(consumer(python), end, peak)
    print(f"{len(end['segments'])} segments, {len(order(end))} events equal to PyTorch's")
    return 0


sys.exit(main())
