# SPDX-License-Identifier: Apache-2.0
"""Events and stacks of a trace as the tests look at them, and names for a
program's own functions from its symbol table (no symbolizer involved)."""

import bisect
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "lifecycle"))

import lab  # noqa: E402

PRINT_STACKS = os.path.join(lab.BUILD, "stacks", "print_stacks")
SHIM_NAME = "libvramscope.so"
NOTE_NATIVE_CUT, NOTE_NATIVE_STOPPED, NOTE_PYTHON_CUT, NOTE_PYTHON_NO_FRAME = 1, 2, 3, 4
NOTE_PYTHON_UNSUPPORTED = 6
# Made by the shim or the collector, or naming another event: the program caused none of these.
WITHOUT_STACK = {"undo", "sample", "other_process", "loss", "torn", "forked", "host_sample", "host_shared", "host_reclaimable",
                 "host_oom_kills",
                 "process_end"}


def program(name):
    return os.path.join(lab.BUILD, "stacks", name)


class Trace:
    """`events` in order; `stacks` by id."""

    def __init__(self, path, *only):
        done = subprocess.run([PRINT_STACKS, path, *only], capture_output=True, text=True,
                              timeout=300, check=False)
        lab.equal(f"print_stacks {path}", (done.returncode, done.stderr), (0, ""))
        self.events, self.stacks = [], {}
        for line in done.stdout.splitlines():
            entry = json.loads(line)
            if "event" in entry:
                self.events.append(entry)
            else:
                self.stacks[entry["stack"]] = entry

    def of_kind(self, *kinds):
        return [event for event in self.events if event["event"] in kinds]

    def caused(self):
        return [event for event in self.events if event["event"] not in WITHOUT_STACK]

    def stack_of(self, event):
        return self.stacks[event["id"]]


def check_whole(trace):
    """Every event the program caused has a stack that the trace defines; no other event has one;
    no frame is the shim's."""
    caused = trace.caused()
    lab.check(caused, "no events")
    for event in caused:
        lab.check(event["id"] in trace.stacks, f"no stack {event['id']} for {event}")
    for event in trace.events:
        lab.check(event["event"] not in WITHOUT_STACK or event["id"] == 0, f"a stack for {event}")
    for stack in trace.stacks.values():
        modules = [os.path.basename(word["module"] or "") for word in stack["native"]]
        lab.check(SHIM_NAME not in modules, f"our own frames in {stack}")
    return caused


class Functions:
    """The functions of one file by offset; what the compiler made of one by the function's name."""

    def __init__(self, path):
        lab.need("nm")
        done = subprocess.run(["nm", "-n", "--defined-only", path], capture_output=True, text=True,
                              check=True)
        self.path = os.path.realpath(path)
        rows = [line.split() for line in done.stdout.splitlines()]
        rows = [(int(row[0], 16), row[2].split(".")[0]) for row in rows if len(row) == 3 and row[1] in "tT"]
        self.starts, self.names = [row[0] for row in rows], [row[1] for row in rows]

    def at(self, offset):
        found = bisect.bisect_right(self.starts, offset) - 1
        return self.names[found] if found >= 0 else None

    def of(self, stack):
        """Names of the stack's frames in this file, innermost first."""
        return [self.at(word["offset"]) for word in stack["native"]
                if word["module"] and os.path.realpath(word["module"]) == self.path]
