#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every hooked entry point, on the simulated device: all_calls' own log against the trace.

  test_all_calls.py BUILD SOURCE

Checked for both ways of reaching a function (preloaded symbol, dlsym in a handle):
  - all_calls calls every name of hooks.def;
  - results and exit status are the same as without the shim;
  - every call that is to become an event is one: as the event's own call, or as its label;
  - the trace is whole and consistent (vramscope verify).
"""

import glob
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter

BUILD, SOURCE = sys.argv[1:3]
sys.path.insert(0, os.path.join(SOURCE, "scripts"))
from hook_table import read_table  # noqa: E402

SHIM = os.path.join(BUILD, "lib", "libvramscope.so")
VRAMSCOPE = os.path.join(BUILD, "bin", "vramscope")
LIBRARIES = [os.path.join(BUILD, "simgpu", "lib", name)
             for name in ("libcuda.so.1", "libcudart.so.12", "libcudart.so.13")]
# Called by a program that PyTorch is, not by a C program: tests/torch compares those.
ELSEWHERE = {"framework"}


def run(way, folder, traced):
    command = [os.path.join(SOURCE, "scripts", "simgpu"), "--preload", "no", "--devices", "2",
               "--memory", "8GiB", "--", "env", f"LD_PRELOAD={SHIM if traced else ''}",
               os.path.join(BUILD, "torture", "all_calls"), way] + LIBRARIES
    environment = dict(os.environ, VRAMSCOPE_BUILD=BUILD, VRAMSCOPE_OUTPUT=folder + "/",
                       VRAMSCOPE_LOG="warn", VRAMSCOPE_SAMPLE="always")
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        sys.exit(f"all_calls {way}{' traced' if traced else ''}: exit {done.returncode}\n"
                 f"{done.stdout[-300:]}\n{done.stderr[-2000:]}")
    return [(name, int(result)) for name, result in
            (line.split() for line in done.stdout.splitlines())]


def events_of(folder):
    traces = glob.glob(os.path.join(folder, "*.vscope"))
    if len(traces) != 1:
        sys.exit(f"one trace expected, found {traces}")
    lines = subprocess.run([VRAMSCOPE, "dump", "--json", traces[0]], check=True,
                           capture_output=True, text=True).stdout.splitlines()
    verified = subprocess.run([VRAMSCOPE, "verify", traces[0]], capture_output=True, text=True)
    return [json.loads(line) for line in lines], verified


def recorded(row, result):
    """Whether the call of this row, with this result, must show in the trace."""
    if row.kind in ("HAND", "NONE") or result == 500:  # 500: there was nothing to call
        return False
    return row.kind != "OTHER_CALL" or result != 0


def check_trace(way, calls, events, rows):
    """Counts by name: as many events carry a name as calls were to leave one, or more."""
    seen = Counter()
    for event in events:
        for name in {event.get("call"), event.get("label")}:
            if event["kind"] not in ("sample", "undo"):
                seen[name] += 1
    wanted = Counter(name for name, result in calls
                     if recorded(rows[name], result) and rows[name].kind != "DEVICE_SET")
    for name, count in sorted(wanted.items()):
        if seen[name] < count:
            yield f"{way}: {name} was called {count} times, {seen[name]} events name it"


def main():
    rows = {row.name: row for row in read_table(os.path.join(SOURCE, "shim", "hooks.def"))}
    faults = []
    called, worked = set(), set()
    for way in ("symbol", "handle"):
        with tempfile.TemporaryDirectory() as folder:
            plain = run(way, folder, False)
            traced = run(way, folder, True)
            events, verified = events_of(folder)
        called.update(name for name, _ in traced)
        worked.update(name for name, result in traced if result == 0)
        faults += [f"{way}: {a[0]} gave {a[1]} untraced, {b[1]} traced"
                   for a, b in zip(plain, traced) if a != b]
        faults += check_trace(way, traced, events, rows)
        faults += [f"{way}: verify: {line}" for line in verified.stdout.splitlines()
                   if verified.returncode != 0 and not line.startswith("ok")]
        print(f"{way}: {len(traced)} calls, {len(events)} events")
    hooked = {name for name, row in rows.items() if row.hooked and row.level not in ELSEWHERE}
    faults += [f"{name} is hooked, and all_calls does not call it" for name in hooked - called]
    print(f"{len(hooked)} entry points, {len(hooked & worked)} of them worked; refused or not "
          f"simulated: {', '.join(sorted(hooked - worked))}")
    for fault in faults:
        print(fault, file=sys.stderr)
    sys.exit(1 if faults else 0)


main()
