#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""folded and pprof: their sums are the report's peak, their stacks those of the dump:
test_profiles.py --vramscope PROGRAM --mktrace PROGRAM."""

import lab
from pprof_message import Profile

STEPS = """
meta process {"pid":5,"exe":"/opt/train","rank":3}
meta clock {"start":{"monotonic_ns":1000000000,"real_ns":1700000000000000000}}
device 0 16G Simulated
device 1 16G Simulated
code 1 10 train | /home/u/train.py
code 2 1 <module> | /home/u/train.py
stack 1 py:1:20 py:2:31
stack 2 py:1:21 py:2:31
step dev=-1 size=1
alloc dev=0 call=cuMemAlloc_v2 addr=0x700000000 size=6M stack=1
alloc dev=0 call=cuMemAlloc_v2 addr=0x710000000 size=1M stack=2
free dev=0 call=cuMemFree_v2 addr=0x700000000
step dev=-1 size=2
alloc dev=0 call=cuMemAlloc_v2 addr=0x720000000 size=4M stack=2
alloc dev=1 call=cuMemAlloc_v2 addr=0x820000000 size=2M stack=1
alloc dev=0 call=cuMemAlloc_v2 size=9G stack=1 res=2
free dev=0 call=cuMemFree_v2 addr=0x710000000
step dev=-1 size=3
process_end dev=-1 handle=1
"""
MIB = 1 << 20
TRAIN_20 = "<module> (/home/u/train.py:31);train (/home/u/train.py:20)"
TRAIN_21 = "<module> (/home/u/train.py:31);train (/home/u/train.py:21)"


def folded(here, trace, *options):
    """{stack: value} without the comments."""
    found = {}
    for line in here.export("folded", trace, *options).decode().splitlines():
        if line.startswith("#"):
            continue
        stack, value = line.rsplit(" ", 1)
        found[stack] = found.get(stack, 0) + int(value)
    return found


def peaks(here, trace):
    return sum(device["peak"]["allocated_bytes"]
               for device in here.json("report", "--json", trace)["devices"])


def test_sums_are_the_peak(here):
    some = 0
    for trace in here.traces():
        peak = peaks(here, trace)
        assert sum(folded(here, trace).values()) == peak, trace
        profile = Profile(here.export("pprof", trace))
        assert profile.default == "inuse_space"
        assert sum(sample["values"]["inuse_space"] for sample in profile.samples) == peak, trace
        some += peak != 0
        for metric in ("inuse_objects", "alloc_space", "alloc_objects"):
            sums = sum(sample["values"][metric] for sample in profile.samples)
            assert sums == sum(folded(here, trace, "--metric", metric).values()), (trace, metric)
        least = folded(here, trace, "--min-bytes", "2M")
        assert sum(least.values()) == peak, trace
    assert some > 5


def test_instants(here):
    trace = here.trace("steps", STEPS)
    # Of each device its own peak: 7 MiB in step 1, 2 MiB in step 2.
    assert folded(here, trace) == {f"GPU 0;{TRAIN_20}": 6 * MIB, f"GPU 0;{TRAIN_21}": MIB,
                                   f"GPU 1;{TRAIN_20}": 2 * MIB}
    assert folded(here, trace, "--device", "0") == {TRAIN_20: 6 * MIB, TRAIN_21: MIB}
    assert folded(here, trace, "--at", "end", "--device", "0") == {TRAIN_21: 4 * MIB}
    assert folded(here, trace, "--at", "oom", "--device", "0") == {TRAIN_21: 5 * MIB}
    assert folded(here, trace, "--at", "2ms", "--device", "0") == {TRAIN_20: 6 * MIB}
    assert folded(here, trace, "--from", "5ms", "--device", "0") == {TRAIN_21: 5 * MIB}
    assert folded(here, trace, "--to", "2ms", "--device", "0") == {TRAIN_20: 6 * MIB}
    assert folded(here, trace, "--metric", "alloc_space", "--device", "0") == {
        TRAIN_20: 6 * MIB, TRAIN_21: 5 * MIB}
    assert folded(here, trace, "--metric", "alloc_objects", "--from", "5ms", "--device", "0") == {
        TRAIN_21: 1}
    assert folded(here, trace, "--min-bytes", "2M", "--device", "0") == {
        TRAIN_20: 6 * MIB, "[places below --min-bytes]": MIB}
    assert here.export("folded", trace, "--device", "0").startswith(
        b"# vramscope export: only: device 0\n")


def test_what_would_change_nothing_is_refused(here):
    trace = here.trace("steps", STEPS)

    def complaint(name, *options, status=1):
        done = here.run("export", "-f", name, "-o", "-", *options, trace, status=status)
        assert done.stdout == b"" and done.stderr.count(b"\n") == 1, done
        return done.stderr

    for name in ("folded", "pprof"):
        assert b"--last is for formats that list events" in complaint(name, "--last", "3")
        assert b"--at is after the run's end: the run took" in complaint(name, "--at", "1000")
        assert b"as far as --device, --from and --to go" in complaint(name, "--at", "oom", "--device", "1")
    for name in ("csv", "json", "sqlite"):
        assert b"--at is not for -f " + name.encode() in complaint(name, "--at", "end", status=2)
    for name in ("csv", "html", "perfetto", "pytorch"):
        assert b"--metric is not for" in complaint(name, "--metric", "alloc_space", status=2)


def test_stacks(here):
    got = here.export("folded", here.trace("origins"), "--metric", "alloc_objects").decode()
    assert got.splitlines()[0] == (
        "Py_RunMain (python3.11);<module> (/home/u/train.py:31);fast_call (fast.so);"
        "train (/home/u/train.py:20);Linear.forward "
        "(/v/lib/python3.11/site-packages/torch/nn/linear.py:114);at::empty (libtorch.so);"
        "scale (libtorch.so);clamp (libtorch.so) 2")
    assert "[… more Python frames: cut at VRAMSCOPE_DEPTH];" in got


def test_pprof_labels_and_metadata(here):
    trace = here.trace("steps", STEPS)
    profile = Profile(here.export("pprof", trace, "--min-bytes", "1K"))
    assert profile.types == [("alloc_objects", "count"), ("alloc_space", "bytes"),
                             ("inuse_objects", "count"), ("inuse_space", "bytes")]
    assert profile.time_ns == 1700000000000000000
    labels = {(sample["labels"]["device"], sample["labels"]["step"])
              for sample in profile.samples}
    assert labels == {("0", 1), ("1", 2)}
    assert all(sample["labels"]["layer"] == "driver" and sample["labels"]["rank"] == "3"
               for sample in profile.samples)
    assert profile.comments == ["vramscope: in use at peak", "vramscope: only at least 1024 bytes"]
    at = Profile(here.export("pprof", trace, "--at", "end", "--metric", "alloc_space"))
    assert at.default == "alloc_space" and at.comments == ["vramscope: in use at end"]
    assert {sample["labels"]["step"] for sample in at.samples} == {3}


def frame_of(frame):
    """As pprof_message has it."""
    name = frame.get("text" if frame["kind"] == "note" else "function")
    return name, frame.get("file", ""), frame.get("line", 0)


def test_pprof_has_the_frames_of_the_dump(here):
    for trace in here.traces():
        lines = here.lines("dump", "--json", "--stacks", trace)
        stacks = {tuple(frame_of(frame) for frame in line["frames"])
                  for line in lines if line.get("frames")}
        notes = {frame["text"] for line in lines for frame in line.get("frames", [])
                 if frame["kind"] == "note" and "no Python code" in frame["text"]}
        shown = {tuple(frame for frame in stack if frame[0] not in notes) for stack in stacks}
        for sample in Profile(here.export("pprof", trace)).samples:
            if len(sample["frames"]) > 1:
                assert tuple(frame[:3] for frame in sample["frames"]) in shown, sample


def test_the_same_bytes_each_time(here):
    trace = here.trace("origins")
    assert here.export("pprof", trace) == here.export("pprof", trace)


lab.main([test for name, test in sorted(globals().items()) if name.startswith("test_")])
