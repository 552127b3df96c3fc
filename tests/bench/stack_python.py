# SPDX-License-Identifier: Apache-2.0
"""Events of a Python program 30 frames deep.

  stack_python.py LIBRARY time EVENTS ROUNDS     ns per event without and with stacks, in turns
  stack_python.py LIBRARY count EVENTS           for callgrind: only bench_counted is looked at"""
import ctypes
import json
import sys

FRAMES, TURNS, WARM = 30, 15, 2000

core = ctypes.CDLL(sys.argv[1])
core.bench_round_ns.restype = ctypes.c_double
core.bench_stacks_sent.restype = ctypes.c_ulong


def time_events():
    best = {"none": 1e9, "python": 1e9, "both": 1e9}
    events, rounds = int(sys.argv[3]), int(sys.argv[4])
    for _ in range(TURNS):
        for name, native, python in (("none", 0, 0), ("python", 0, 1), ("both", 1, 1)):
            core.bench_want(native, python, 0)
            best[name] = min(best[name], core.bench_round_ns(events, rounds))
    print(json.dumps(dict(best, stacks=core.bench_stacks_sent())))


def count_events():
    core.bench_want(0, 1, 1)
    core.bench_round_ns(WARM, 1)
    core.bench_counted(int(sys.argv[3]))


def climb(level, function):
    if level > 0:
        climb(level - 1, function)
    else:
        function()


core.bench_begin(64)
# <module>, and the function itself at the other end
climb(FRAMES - 3, time_events if sys.argv[2] == "time" else count_events)
