#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plays out-of-memory cases around captures and private pools with real PyTorch on the simulated
device: one entry of the expected class at its line, whose figures are those of PyTorch's snapshot
and message; the pools' lines; healthy twins that stay silent.

usage: check_pools.py --bin DIR --simgpu SCRIPT [--python PYTHON]
Exit status: 0 as expected, 1 not, 77 no PyTorch here.
"""
import json
import pathlib
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "torch"))
import real_torch  # noqa: E402

MIB = 1 << 20
PROGRAM = pathlib.Path(__file__).resolve().parent / "programs" / "torch_pools.py"
# Case: class, MiB asked for, what `why` says.
EXPECTED = {
    "graph_pool": ("full", 2000, ["1.46 GiB lay free in a private pool"]),
    "pools_apart": ("full", 900, ["3.52 GiB lay free in 4 private pools", "pool="]),
    "pool_gone": ("pinned_segment", 2000, ["100 MiB in 1 live block", "2.93 GiB",
                                           "of a graph that is gone"]),
    "warm_up_cached": ("held_by_cache", 2000, ["2.44 GiB that no block touches",
                                               "torch.cuda.empty_cache()"]),
    "warm_up_kept": ("pinned_segment", 2000, ["100 MiB in 1 live block", "in the default pool"]),
    "recorded_in_capture": ("waiting_streams", 1500, ["2.93 GiB", "record_stream"]),
    "beside_capture": ("full", 1400, ["2.44 GiB lay free in a private pool"]),
    "mem_pool": ("full", 2000, ["2.44 GiB lay free in a private pool, which only its MemPool"]),
    "mem_pool_gone": ("pinned_segment", 2000, ["100 MiB in 1 live block", "in a MemPool that is gone"]),
    "stream_of_capture": ("other_stream", 2000, ["2.34 GiB was cached, but for stream 0x"]),
}
# The cases whose verdict is about pools: how the line that made them is marked.
MAKERS = {"graph_pool": "# MAKES THE POOL", "pools_apart": "# MAKES THE POOL",
          "pool_gone": "# MAKES THE POOL pool_gone",
          "mem_pool": "# MAKES THE POOL mem_pool", "mem_pool_gone": "# MAKES THE POOL mem_pool_gone",
          "beside_capture": "# MAKES THE POOL beside_capture"}
UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": MIB, "GiB": 1 << 30}


def marked(mark):
    for number, text in enumerate(PROGRAM.read_text().splitlines(), 1):
        if text.endswith(mark):
            return number
    raise SystemExit(f"no line is marked {mark}")


def lines_of(report, stack):
    site = next((site for site in report["sites"] if site["stack"] == stack), {"frames": []})
    return [frame["line"] for frame in site["frames"] if frame["file"] == str(PROGRAM)]


def said(message, before):
    """A size of PyTorch's message, and the half of its last digit; None where it is not there."""
    found = re.search(r"([\d.]+) (bytes|KiB|MiB|GiB) " + before, message)
    if found is None:
        return None
    unit = UNITS[found[2]]
    return float(found[1]) * unit, 0.0051 * unit


def message_faults(message, parts, deferred):
    """Of what is cached PyTorch says what is free in private pools, and the rest. What a capture
    defers is free for us and pending for PyTorch: then the two are held against ours together."""
    cached = sum(part["free_bytes"] + part["pending_bytes"] for part in parts)
    private = sum(part["free_bytes"] for part in parts if part["pool"] != 0)
    theirs = [said(message, words) for words in ("allocated in private pools", "is reserved by PyTorch")]
    sizes = [size for size in theirs if size is not None]
    slack = sum(size[1] for size in sizes)
    faults = []
    if abs(sum(size[0] for size in sizes) - cached) > slack:
        faults.append(f"{cached} bytes cached, PyTorch says {theirs}")
    if not deferred and abs((theirs[0] or (0, 0))[0] - private) > slack:
        faults.append(f"{private} bytes free in private pools, PyTorch says {theirs[0]}")
    return faults


def snapshot_faults(segments, parts):
    """Per pool: what it reserved, what is free in it."""
    theirs, ours = {}, {}
    for segment in segments:
        sums = theirs.setdefault(tuple(segment["pool"]), [0, 0])
        sums[0] += segment["bytes"]
        sums[1] += sum(segment["free"]) + sum(segment["pending"])
    for part in parts:
        sums = ours.setdefault(part["pool"], [0, 0])
        sums[0] += part["reserved_bytes"]
        sums[1] += part["free_bytes"] + part["pending_bytes"]
    default = (theirs.pop((0, 0), [0, 0]), ours.pop(0, [0, 0]))
    faults = [] if default[0] == default[1] else [f"default pool: {default[1]}, not {default[0]}"]
    if sorted(theirs.values()) != sorted(ours.values()):
        faults.append(f"private pools: {ours}, PyTorch's {theirs}")
    return faults


def oom_faults(name, oom, line, report):
    verdict, requested, named = EXPECTED[name]
    wanted = {"class": verdict, "layer": "framework", "requested_bytes": requested * MIB}
    faults = [f"{field} is {oom[field]}, not {value}: {oom['why']}"
              for field, value in wanted.items() if oom[field] != value]
    faults += [f"{text!r} is not in {oom['why']!r}" for text in named if text not in oom["why"]]
    lines = lines_of(report, oom["stack"])
    if marked(f"# FAILS {name}") not in lines:
        faults.append(f"at lines {lines}")
    parts = oom["fragmentation"]["parts"]
    if name in MAKERS:
        makers = [lines_of(report, part["made_by"]) for part in parts if part["pool"] != 0]
        faults += [f"a pool was made at {at}" for at in makers if marked(MAKERS[name]) not in at]
    return faults + \
        message_faults(line["message"], parts, verdict == "waiting_streams") + \
        snapshot_faults(line["segments"], parts)


def faults_of_case(line, report, page):
    name, loud = line["case"].split()[0], [oom for oom in report["ooms"] if not oom["repaired"]]
    if line["case"] != name:
        return [f"failed: {line.get('message')}, entries: {loud}"] if "message" in line or loud else []
    if "message" not in line or len(loud) != 1:
        return [f"failed: {line.get('message')}, entries: {loud}"]
    faults = oom_faults(name, loud[0], line, report)
    told = any(f"{word} by {where}{PROGRAM.name}:" in page
               for word in ("made", "used") for where in ("", "programs/"))
    if loud[0]["class"] == "full" and not told:
        faults.append(f"the page does not tell who made the pool:\n{page}")
    return faults


def check(arguments):
    wrong, cases = [], [words for name in EXPECTED for words in (name, f"{name} healthy")]
    with tempfile.TemporaryDirectory(prefix="vramscope-pools-") as folder:
        printed = real_torch.run_programs(arguments, folder, "4G", PROGRAM, cases)
        lines = {line["pid"]: line for line in map(json.loads, printed.splitlines())}
        missing = set(cases) - {line["case"] for line in lines.values()}
        for trace in sorted(pathlib.Path(folder).rglob("*.vscope")):
            report = real_torch.report_of(arguments, trace)
            line = lines.pop(report["process"]["pid"], None)
            if line is not None:
                page = real_torch.page_of(arguments, trace)
                wrong += [(line["case"], fault) for fault in faults_of_case(line, report, page)]
    wrong += [(line["case"], "no trace") for line in lines.values()]
    wrong += [(words, "did not end") for words in missing]
    return real_torch.tell("WRONG", len(cases), wrong)


if __name__ == "__main__":
    sys.exit(real_torch.run_test(check))
