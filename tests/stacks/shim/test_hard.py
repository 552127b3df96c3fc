# SPDX-License-Identifier: Apache-2.0
"""What a program can do to a capture, and what many stacks do to memory."""

import collections
import glob
import os

import lab
from stack_traces import Functions, Trace, check_whole, program

OURS = ("pipe", "pipe2", "read", "close", "mmap", "munmap", "mincore", "madvise", "mprotect",
        "rt_sigprocmask", "openat", "brk")


def interrupted(room, what, seconds=2):
    ended = room.preloaded([program("interrupted"), what, str(seconds * (5 if lab.SLOW else 1))])
    lab.equal(f"status: {ended.err}", ended.status, 0)
    figures = {words[0]: int(words[1]) for words in map(str.split, ended.out.splitlines())}
    lab.check(figures["signals"] > 100, f"{figures}")
    path = room.wait_for_traces(1)[0]
    trace = Trace(path)
    functions = Functions(program("interrupted"))
    return trace, functions, figures, lab.report(path)


def last_rounds_are_whole(trace, functions):
    """After all of it: ten rounds without a signal."""
    for event in trace.of_kind("alloc", "free")[-20:]:
        names = functions.of(trace.stack_of(event))
        lab.equal("the last stacks", names, ["climb"] * 13 + ["main", "_start"])


def test_nested(room):
    """Signal handlers that record an event of their own, at any moment of a capture."""
    trace, functions, figures, report = interrupted(room, "nested")
    check_whole(trace)
    steps = trace.of_kind("step")
    lab.equal("handlers' events", len(steps) + report["trace"]["lost"] >= figures["signals"], True)
    inside = 0
    for event in steps:
        names = functions.of(trace.stack_of(event))
        lab.equal("innermost of a handler's event", names[:2], ["from_handler", "on_signal"])
        lab.equal("outermost", names[-2:], ["main", "_start"])
        inside += "climb" in names
    lab.check(inside > len(steps) // 2, f"{inside} of {len(steps)} handlers ran inside a round")
    last_rounds_are_whole(trace, functions)


def test_jump(room):
    """siglongjmp out of whatever the hook is doing."""
    trace, functions, figures, report = interrupted(room, "jump")
    check_whole(trace)
    lab.check(figures["rounds"] > 1000, f"{figures}")
    last_rounds_are_whole(trace, functions)


def test_end(room):
    """Threads that end in the middle of a capture."""
    trace, functions, _, _ = interrupted(room, "end")
    check_whole(trace)
    last_rounds_are_whole(trace, functions)


def test_fork(room):
    """Raw forks out of a signal handler in the middle of a capture."""
    trace, functions, _, _ = interrupted(room, "fork")
    check_whole(trace)
    last_rounds_are_whole(trace, functions)


def calls_of_threads(folder, count):
    """System calls of the threads that the program itself started, all together."""
    files = {int(path.split(".")[-1]): open(path, encoding="utf-8", errors="replace").readlines()
             for path in glob.glob(os.path.join(folder, "calls.*"))}
    main = min(files)
    threads = [int(line.split("=")[-1]) for line in files[main]
               if line.startswith(("clone(", "clone3(")) and "CLONE_THREAD" in line]
    lab.check(len(threads) >= count, f"{len(threads)} threads in the main thread's calls")
    total = collections.Counter()
    for thread in threads[-count:]:
        total.update(line.split("(")[0] for line in files[thread] if "(" in line)
    return total


def test_system_calls(room):
    """A thousand new threads: what the shim adds to their system calls.

    One arena: what malloc unmaps around a thread's own depends on where the kernel puts it.
    """
    strace = lab.need("strace")
    count = 1000 if lab.SLOW else 200
    totals = {}
    for name in ("plain", "traced"):
        folder = room.path(name)
        os.mkdir(folder)
        preload = f"{lab.SHIM}:$LD_PRELOAD" if name == "traced" else "$LD_PRELOAD"
        shell = (f'exec {strace} -f -ff -qq -o {folder}/calls -E LD_PRELOAD="{preload}" '
                 "-E MALLOC_ARENA_MAX=1 "
                 f"-E VRAMSCOPE_OUTPUT={room.traces_folder}/ {program('many_threads')} {count}")
        ended = room.run(room.on_simgpu(["sh", "-c", shell]), timeout=300)
        lab.equal(f"{name}: {ended.out}{ended.err}", (ended.status, ended.out),
                  (0, "descriptors whole\n"))
        totals[name] = calls_of_threads(folder, count)
    added = {call: totals["traced"][call] - totals["plain"][call] for call in totals["traced"]}
    lab.say(f"added over {count} threads: { {k: v for k, v in added.items() if v} }")
    for call in OURS:
        lab.check(added.get(call, 0) <= 0, f"{call}: {added.get(call)} more in {count} threads")
    trace = Trace(room.wait_for_traces(1)[0])
    check_whole(trace)
    lab.check(len(trace.of_kind("alloc")) >= 3 * count, "an allocation is missing")


def churn(room, stacks, options):
    ended = room.preloaded([program("churn"), str(stacks)], options, timeout=900)
    lab.equal(f"status: {ended.err}", ended.status, 0)
    figures = {words[0]: float(words[1]) for words in map(str.split, ended.out.splitlines())}
    path = room.wait_for_traces(1, 120)[0]
    return path, figures


def test_churn(room):
    """
    Stacks without end: bounded memory, nothing lost. A run of a quarter of a second may wait for
    2.5 ms in all: beside other tests it has a ring that holds most of what it says.
    """
    stacks = 10_000_000 if lab.SLOW else 200_000
    ring_mib = 16 if lab.SLOW else 64
    path, figures = churn(room, stacks, {"VRAMSCOPE_LOG": "debug", "VRAMSCOPE_RING": f"{ring_mib}M"})
    lab.say(f"{stacks} stacks: {figures}, {os.path.getsize(path)} bytes")
    lab.check(figures["grew"] <= (64 - 16 + ring_mib) * 1024, f"grew by {figures['grew']} KiB")
    report = lab.report(path)
    lab.equal("lost", report["trace"]["lost"], 0)
    lab.equal("events", report["trace"]["events"] >= stacks, True)
    if not lab.SLOW:
        ids = [event["id"] for event in Trace(path, "--events").of_kind("step")]
        lab.equal("events", len(ids), stacks)
        lab.equal("distinct stacks", len(set(ids) - {0}), stacks)
