#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stacks of real PyTorch programs on the simulated device, against other people's
view of the same stacks.

  compare.py recorder        our frames against PyTorch's own recorder, in the same run
  compare.py native COUNT    our native frames, remembered and made, against the compiler's unwinder and libunwind

Exit status: 0 equal, 1 different, 77 no PyTorch here."""

import glob
import json
import os
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "shim"))

import stack_traces  # first: it shows the way to lab
import lab

PYTHON = os.environ.get("VRAMSCOPE_TORCH_PYTHON", "")
PROGRAM = os.path.join(HERE, "programs", "recorded.py")
CHECKED_SHIM = stack_traces.program("libvramscope_checked.so")
FIGURES = ("wanted", "compared", "frames", "differ", "cut", "stopped", "recalled", "wrongly_recalled",
           "by_libunwind", "differ_from_libunwind")


def run_recorded(room, steps, env):
    output = room.path("recorder.json")
    ended = room.preloaded([PYTHON, PROGRAM, output, str(steps)],
                           {"VRAMSCOPE_DEPTH": "256", "TORCH_SYMBOLIZE_MODE": "dladdr", **env},
                           timeout=560)
    lab.equal(f"status of the program: {ended.err[-3000:]}", ended.status, 0)
    with open(output, encoding="utf-8") as file:
        return json.load(file)


# ---- against PyTorch's recorder ------------------------------------------------------------------

def between_marks(events):
    marks = [place for place, event in enumerate(events) if event["event"] == "mark"]
    lab.equal("marks", len(marks), 2)
    return events[marks[0]:marks[1]]


class Split:
    """Frames of the recorder, told apart: native ones lie in an object, at an offset for a line."""

    def __init__(self, modules):
        self.modules = {os.path.realpath(path) for path in modules}
        self.real = {}

    def is_native(self, file):
        if file not in self.real:
            self.real[file] = os.path.realpath(file)
        return file == "??" or self.real[file] in self.modules

    def python(self, frames):
        return [(name, file, line) for name, file, line in frames if not self.is_native(file)]

    def native(self, frames):
        return [(self.real[file], line) for _, file, line in frames if self.is_native(file)]


def our_python(stack):
    """The recorder keeps a function's own name, we the qualified one."""
    return [(frame["function"].split(".")[-1], frame["file"], frame["line"])
            for frame in stack["python"]]


def same_native(ours, theirs):
    """Both lead out of the allocator, each from a place of its own within it: what lies behind
    is the same, and what is left over lies in the allocator and the recorder."""
    common = 0
    while common < min(len(ours), len(theirs)) and ours[-1 - common] == theirs[-1 - common]:
        common += 1
    left = {os.path.basename(module) for module, _ in ours[:len(ours) - common]}
    return common > 3 and left <= {"libc10_cuda.so", "libc10.so"}


def short(native):
    return " ".join(f"{os.path.basename(module)}+{offset:x}" for module, offset in native)


class Comparison:
    def __init__(self, trace, split):
        self.trace, self.split = trace, split
        self.stacks = self.frames = self.without_python = self.native_stacks = 0
        self.differences = []

    def one(self, event, entry):
        stack = self.trace.stack_of(event)
        ours, theirs = our_python(stack), self.split.python(entry["frames"])
        self.stacks += 1
        self.frames += len(ours)
        self.without_python += not ours
        if ours != theirs:
            self.differences.append(f"{entry['action']} {hex(entry['address'])}: {ours}\n"
                                    f"   recorder: {theirs}")
        native = [(os.path.realpath(word["module"]), word["offset"])
                  for word in stack["native"] if word["module"]]
        self.native_stacks += 1
        if not same_native(native, self.split.native(entry["frames"])):
            self.differences.append(f"{entry['action']} native: {short(native)}\n"
                                    f"   recorder: {short(self.split.native(entry['frames']))}")


def compare_recorder(room):
    entries = run_recorded(room, 3, {})
    trace = stack_traces.Trace(room.wait_for_traces(1, 60)[0])
    events = between_marks(trace.events)
    modules = {word["module"] for stack in trace.stacks.values() for word in stack["native"]
               if word["module"]}
    comparison = Comparison(trace, Split(modules))
    for kind, action in (("fw_alloc", "alloc"), ("fw_free", "free_requested")):
        ours = [event for event in events if event["event"] == kind]
        theirs = [entry for entry in entries if entry["action"] == action]
        # The recorder goes on behind our mark, where the program's model is freed.
        lab.equal(f"addresses of {kind}", [event["address"] for event in ours],
                  [entry["address"] for entry in theirs][:len(ours)])
        for event, entry in zip(ours, theirs):
            comparison.one(event, entry)
    stack_traces.check_whole(trace)
    print(f"{comparison.stacks} stacks, {comparison.frames} Python frames, "
          f"{comparison.without_python} without Python frames on either side, "
          f"{comparison.native_stacks} native parts: {len(comparison.differences)} differences")
    for difference in comparison.differences[:5]:
        print(f"DIFFERENT {difference}")
    lab.check(comparison.stacks > 500, "too few stacks to speak of")
    lab.equal("differences", len(comparison.differences), 0)


# ---- against the compiler's unwinder -------------------------------------------------------------

def compare_native(room, count):
    run_recorded(room, 3 + count // 200, {  # some 280 events a step
        "LD_PRELOAD": CHECKED_SHIM,
        "VRAMSCOPE_COLLECTOR": os.path.join(lab.BUILD, "bin", "vramscope-collector"),
        "VS_CHECK_FILE": room.path("check"), "VS_CHECK_STACKS": str(count)})
    found = []
    for path in glob.glob(room.path("check.*")):
        with open(path, "rb") as file:
            data = file.read()
        found.append((dict(zip(FIGURES, struct.unpack_from(f"{len(FIGURES)}Q", data))),
                      data[8 * len(FIGURES):].rstrip(b"\0").decode()))
    figures, difference = max(found, key=lambda pair: pair[0]["compared"])
    print(f"{figures}\n{difference}")
    lab.equal("stacks compared", figures["compared"], count)
    lab.equal("stacks that differ", figures["differ"], 0)
    lab.equal("stacks that stopped early", figures["stopped"], 0)
    lab.equal("stacks that libunwind was asked about", figures["by_libunwind"], count)
    lab.equal("stacks that differ from libunwind's", figures["differ_from_libunwind"], 0)
    lab.equal("remembered walks that are not the one made", figures["wrongly_recalled"], 0)
    lab.check(figures["recalled"] > count // 2, "too few walks were remembered ones")
    lab.check(figures["compared"] - figures["recalled"] > 100, "too few walks were made ones")


def main(arguments):
    if not PYTHON:
        print("no PyTorch: set VRAMSCOPE_TORCH_PYTHON (scripts/torch-env prints it)")
        return lab.SKIPPED
    room = lab.Lab()
    try:
        if arguments[0] == "recorder":
            compare_recorder(room)
        else:
            compare_native(room, int(arguments[1]))
    except lab.Failed as why:
        print(f"FAILED: {why}")
        return 1
    finally:
        room.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
