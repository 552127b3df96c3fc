# SPDX-License-Identifier: Apache-2.0
"""Whole programs under the real shim: every event has its stack, and what is asked for is kept."""

import os
import sys

import lab
from stack_traces import (NOTE_NATIVE_CUT, NOTE_PYTHON_CUT, Functions, Trace, check_whole, program)

PYTHON_PROGRAM = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
context, pointer = ctypes.c_void_p(), ctypes.c_uint64()
cuda.cuInit(0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
def inner():
    cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(4096))
    cuda.cuMemFree_v2(pointer)
def outer(n):
    return outer(n - 1) if n else inner()
outer(20)
"""


def trace_of(room, command, env=None):
    ended = room.preloaded(command, env)
    lab.equal(f"status of {command[0]}: {ended.err}", ended.status, 0)
    trace = Trace(room.wait_for_traces(1)[0])
    room.empty_traces()
    return trace, ended


def python_trace(room, env):
    """`env` for the program alone: the launcher's processes would warn of wrong values too."""
    settings = [f"{name}={value}" for name, value in env.items()]
    return trace_of(room, ["env", *settings, sys.executable, "-c", PYTHON_PROGRAM])


def allocation(trace):
    return trace.stack_of([e for e in trace.of_kind("alloc") if e["size"] == 4096][0])


def test_every_kind(room):
    """All hooked calls, driver and runtime, succeeding and failing."""
    calls = os.path.join(lab.PROGRAMS, "calls")
    if not os.path.exists(calls):
        raise lab.Skip("the program `calls` was not built")
    failed = 0
    for which in ("driver", "runtime"):
        trace, _ = trace_of(room, [calls, room.path("calls.log"), which])
        check_whole(trace)
        functions = Functions(calls)
        for event in trace.caused():
            names = functions.of(trace.stack_of(event))
            lab.check(names and names[-1] in ("main", "_start"), f"{event}: ends in {names}")
        failed += sum(event["result"] != 0 for event in trace.caused())
    lab.check(failed > 0, "no failed call was among them")


def test_kinds_wanted(room):
    whole, _ = python_trace(room, {})
    stack = allocation(whole)
    names = [frame["function"] for frame in stack["python"]]
    lab.equal("Python frames", names, ["inner"] + ["outer"] * 21 + ["<module>"])
    lab.check(len(stack["native"]) > 10, f"native frames: {len(stack['native'])}")
    check_whole(whole)
    native, _ = python_trace(room, {"VRAMSCOPE_STACKS": "native"})
    lab.equal("Python frames when not wanted", allocation(native)["python"], [])
    lab.equal("native frames alone", len(allocation(native)["native"]), len(stack["native"]))
    python, _ = python_trace(room, {"VRAMSCOPE_STACKS": "python"})
    lab.equal("native frames when not wanted", allocation(python)["native"], [])
    lab.equal("Python frames alone", allocation(python)["python"], stack["python"])
    none, _ = python_trace(room, {"VRAMSCOPE_STACKS": "none"})
    lab.equal("stacks when none are wanted", none.stacks, {})
    lab.check(all(event["id"] == 0 for event in none.events), "ids without stacks")


def test_run_option(room):
    """vramscope run passes the wish on."""
    ended = room.run(room.on_simgpu(room.tool_run([sys.executable, "-c", PYTHON_PROGRAM],
                                                  "--stacks", "python", "--depth", "7")))
    lab.equal(f"status: {ended.err}", ended.status, 0)
    stack = allocation(Trace(room.one_trace()))
    lab.equal("native", stack["native"], [])
    lab.equal("Python frames", len(stack["python"]), 7)
    lab.equal("notes", stack["notes"], [NOTE_PYTHON_CUT])


def test_depth(room):
    cut, _ = python_trace(room, {"VRAMSCOPE_DEPTH": "5"})
    stack = allocation(cut)
    lab.equal("frames of each kind", (len(stack["native"]), len(stack["python"])), (5, 5))
    lab.equal("notes", stack["notes"], [NOTE_NATIVE_CUT, NOTE_PYTHON_CUT])
    whole, _ = python_trace(room, {"VRAMSCOPE_DEPTH": "256"})
    lab.equal("notes when nothing is cut", allocation(whole)["notes"], [])
    lab.equal("the innermost are the same", allocation(whole)["python"][:5], stack["python"])
    for wrong in ("257", "0", "deep"):
        refused, ended = python_trace(room, {"VRAMSCOPE_DEPTH": wrong})
        lab.equal("lines of warning", ended.err.count("VRAMSCOPE_DEPTH"), 1)
        lab.check("1 to 256" in ended.err, f"the warning names what is accepted: {ended.err}")
        lab.equal("the default is used", allocation(refused)["python"],
                  allocation(whole)["python"])
    refused, ended = python_trace(room, {"VRAMSCOPE_STACKS": "both"})
    lab.equal("lines of warning", ended.err.count("VRAMSCOPE_STACKS"), 1)
    lab.check(allocation(refused)["python"] and allocation(refused)["native"], "the default")


def test_replaced_library(room):
    """One library after another at the same addresses: each stack names its own."""
    libraries = [program(f"replaced_{name}.so") for name in ("one", "two", "three")]
    rounds = 4
    trace, ended = trace_of(room, [program("replaced"), str(rounds), *libraries])
    uses = {int(words[1]): (words[2], words[3]) for words in ended.words("use")}
    lab.equal("uses", len(uses), rounds * len(libraries))
    lab.equal("places of the function", len({place for _, place in uses.values()}), 1)
    allocations = {event["size"]: event for event in trace.of_kind("alloc")}
    for size, (path, _) in uses.items():
        stack = trace.stack_of(allocations[size])
        found = [word["module"] for word in stack["native"] if "replaced_" in str(word["module"])]
        lab.equal(f"library of the allocation of {size}", found, [path])
    check_whole(trace)


def test_overhead_covers_stacks(room):
    """The cost that the report names contains the walk: without stacks it is far lower."""
    spent = {}
    for stacks in ("none", "native,python"):
        room.empty_traces()
        ended = room.preloaded([program("churn"), "20000"], {"VRAMSCOPE_STACKS": stacks})
        lab.equal(f"status: {ended.err}", ended.status, 0)
        report = lab.report(room.wait_for_traces(1)[0])
        spent[stacks] = report["trace"]["overhead"]["events_ns"]
        measured = float(ended.words("ns_per_stack")[0][1]) * 20000
    lab.check(spent["native,python"] > 3 * spent["none"], f"spent: {spent}")
    lab.check(spent["native,python"] < 3 * measured, f"spent {spent}, all the run took {measured}")
