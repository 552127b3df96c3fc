# SPDX-License-Identifier: Apache-2.0
"""Driver level: after every call, the bytes the trace says are used on each
device are those the simulated device has in its own books."""

import bisect
import collections
import csv
import io
import os
import time

from lab import Failed, check, collectors_of, dump, equal, program, report, say, tool, verify
from test_loader import hooked_names

ALWAYS = {"VRAMSCOPE_SAMPLE": "always", "VRAMSCOPE_STACKS": "none"}


def read_log(path):
    """[(time_ns, name, result, [used of each device])]"""
    with open(path, encoding="ascii") as file:
        rows = [line.split() for line in file]
    return [(int(row[0]), row[1], int(row[2]), [int(word) for word in row[3:]]) for row in rows]


def timeline(trace):
    """{device: ([time_ns], [row])} of timeline --csv."""
    done = tool("timeline", "--csv", trace)
    check(done.status == 0, f"timeline {trace}: status {done.status}: {done.err}")
    curves = collections.defaultdict(lambda: ([], []))
    for row in csv.DictReader(io.StringIO(done.out)):
        times, rows = curves[int(row["device"])]
        times.append(int(row["time_ns"]))
        rows.append(row)
    return curves


def number(row, column):
    return int(row[column]) if row.get(column) not in (None, "") else 0


# What the device rounds on top of an array is not told by any call: unexplained while one lives.
ARRAY_MADE = {"cuArrayCreate_v2", "cuArray3DCreate_v2", "cuMipmappedArrayCreate", "cudaMallocArray",
              "cudaMalloc3DArray", "cudaMallocMipmappedArray"}
ARRAY_GONE = {"cuArrayDestroy", "cuMipmappedArrayDestroy", "cudaFreeArray", "cudaFreeMipmappedArray"}


def compare(log, trace, hooked):
    """Holds the curve against the log (both times of one clock) after every hooked call;
    another call's effect is seen with the next hooked one. Nothing may be unexplained."""
    curves = timeline(trace)
    start = trace_start(trace, curves)
    wrong = []
    arrays = 0
    for time_ns, name, result, used in log:
        if result == 0:
            arrays += (name in ARRAY_MADE) - (name in ARRAY_GONE)
        if hooked is not None and name not in hooked:
            continue
        for device, books in enumerate(used):
            times, rows = curves.get(device, ([], []))
            index = bisect.bisect_right(times, time_ns - start) - 1
            row = rows[index] if index >= 0 else {}
            traced = number(row, "device_bytes")
            unexplained = 0 if arrays else number(row, "unexplained_bytes")
            if traced != books or unexplained != 0:
                wrong.append(f"{name} ({result}): device {device}: books {books}, trace {traced}, "
                             f"unexplained {unexplained}")
    return wrong


def trace_start(trace, curves):
    """The curve's zero on the clock of the events: each row's time is an event's."""
    events = sorted({event["time_ns"] for event in dump(trace)})
    known = set(events)
    times = next(iter(curves.values()))[0]
    for first in events[:200]:
        start = first - times[0]
        if all(start + time in known for time in times[:50]):
            return start
    raise Failed("no time of the curve is the time of an event")


def check_calls(lab, binary, mode, names):
    log_path = lab.path("log")
    done = lab.run(lab.on_simgpu(lab.tool_run([program(binary), log_path, mode, *names]),
                                 "--devices", "2"), ALWAYS)
    equal(f"{binary} {mode}: status ({done.err})", done.status, 0)
    trace = lab.one_trace()
    log = read_log(log_path)
    wrong = compare(log, trace, set(hooked_names()))
    say(f"{binary} {mode}: {len(log)} calls of {len({row[1] for row in log})} entry points, "
        f"{sum(row[2] == 0 for row in log)} of them successful")
    check(not wrong, f"{len(wrong)} of {len(log)} calls differ:\n" + "\n".join(wrong[:20]))
    verify(trace)
    return log, report(trace)


def test_driver_symbols(lab):
    names = [name for name in hooked_names() if not name.startswith("cuda")]
    log, summary = check_calls(lab, "calls", "driver", names)
    missing = set(names) - {row[1] for row in log}
    equal("hooked driver names that were not called", sorted(missing), [])
    check(summary["hooks"]["driver_events"] > 0, "no driver events")


def test_driver_proc_address(lab):
    check_calls(lab, "calls", "proc-address", [])


def test_driver_runtime(lab):
    names = [name for name in hooked_names() if name.startswith("cuda")]
    log, summary = check_calls(lab, "calls", "runtime", names)
    known = {row[1] for row in log}
    say(f"runtime names that simgpu's runtime 13 has not: {sorted(set(names) - known)}")
    check(summary["hooks"]["runtime_events"] > 0, "no runtime events")
    equal("runtime_versions", summary["process"]["runtime_versions"], ["13"])


def test_driver_static_runtime(lab):
    """The twin with the runtime inside: the same bytes, and the report says static."""
    log, summary = check_calls(lab, "calls-static", "runtime", [])
    check(len(log) > 50, "too few calls")
    equal("hooks.static_runtime", summary["hooks"]["static_runtime"], True)


def barriers(lab, rounds, *more, env=None):
    """The program in its rounds; with a PID_FILE as its last argument it is told there
    which process collects."""
    log_path = lab.path("log")
    command = [program("barriers"), log_path, "8", str(rounds), *more]
    process = lab.start(lab.on_simgpu(lab.tool_run(command), "--devices", "2"), {**ALWAYS, **(env or {})})
    if more:
        tell_collector(lab, process, more[-1])
    done = lab.wait(process)
    equal(f"status ({done.err})", done.status, 0)
    log = read_log(log_path)
    equal("barriers", len(log), rounds)
    wrong = compare(log, lab.one_trace(), None)
    check(not wrong, f"{len(wrong)} of {rounds} barriers differ:\n" + "\n".join(wrong[:20]))
    verify(lab.one_trace())
    return report(lab.one_trace())["trace"]["lost"]


def tell_collector(lab, process, pid_file):
    found = []
    while not found and process.poll() is None:
        found = collectors_of(lab.traces_folder)
        time.sleep(0.01)
    equal("collectors", len(found), 1)
    with open(pid_file + ".new", "w", encoding="ascii") as file:
        file.write(f"{found[0]}\n")
    os.rename(pid_file + ".new", pid_file)


def test_driver_barriers(lab):
    equal("lost", barriers(lab, 60), 0)


def test_driver_barriers_lossy(lab):
    """Whatever was lost, once it was told of and the device was asked, all is accounted for."""
    lost = barriers(lab, 8, "400", "400", lab.path("collector"),
                    env={"VRAMSCOPE_RING": "64K", "VRAMSCOPE_WHEN_FULL": "drop",
                         "VRAMSCOPE_FLUSH_MS": "50"})
    check(lost > 0, "a 64 KiB ring lost nothing: the test shows nothing")
    say(f"{lost} events lost")


def test_driver_integrated(lab):
    """What the host can give back is a band of its own where the device shares its memory, only there."""
    for option in ("--integrated", None):
        lab.empty_traces()
        done = lab.run(lab.on_simgpu(lab.tool_run([program("ends"), "exit"]), *filter(None, [option])))
        equal("status", done.status, 7)
        trace = lab.wait_for_traces(1)[0]
        device = report(trace)["devices"][0]
        equal("integrated", device["integrated"], option is not None)
        found = device["end"]["reclaimable_host_bytes"]
        told = [line for line in dump(trace) if "host_reclaimable" in str(line)]
        with open("/proc/meminfo", encoding="ascii") as file:
            total = next(int(line.split()[1]) << 10 for line in file if line.startswith("MemTotal"))
        if option is None:
            equal("bytes, samples", (found, told), (None, []))
        else:
            check(told and found is not None and 0 <= found <= total, f"{found} of {total} bytes")
        verify(trace)
