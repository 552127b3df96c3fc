#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs one program of another framework on the simulated device twice, without and
with vramscope: it must end and print the same, and at every moment that the program
wrote down (programs/books.py) the trace must say what the device's books, and the
framework itself, said.

usage: compare.py --bin DIR --simgpu SCRIPT [options] PROGRAM [ARG ...]

The interpreter is VRAMSCOPE_FRAMEWORKS_PYTHON (scripts/frameworks-env prints it).
Exit status: 0 equal, 1 different, 77 no such environment here.
"""
import argparse
import bisect
import csv
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
HERE = pathlib.Path(__file__).resolve().parent
LOAD_LOCAL = HERE.parent / "torch" / "programs" / "load_local.py"

# What modules, streams and graphs cost, so that a trace that misses one differs from the books.
COSTS = ["--module", "3M", "--stream", "1M", "--graph-node", "64K"]

# Preloads one library more, before all or between the first (the shim) and the stand-ins.
PRELOAD = {
    "first": 'export LD_PRELOAD="$1:$LD_PRELOAD"; shift; exec "$@"',
    "second": 'export LD_PRELOAD="${LD_PRELOAD%%:*}:$1:${LD_PRELOAD#*:}"; shift; exec "$@"',
}


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    parser.add_argument("--simgpu", required=True)
    parser.add_argument("--python", default=os.environ.get("VRAMSCOPE_FRAMEWORKS_PYTHON", ""))
    parser.add_argument("--memory", default="16G")
    parser.add_argument("--local", action="store_true",
                        help="the program loads the stand-ins itself, RTLD_LOCAL")
    parser.add_argument("--first", metavar="LIBRARY", help="preloaded before the shim")
    parser.add_argument("--second", metavar="LIBRARY", help="preloaded right after the shim")
    parser.add_argument("program", nargs=argparse.REMAINDER)
    return parser.parse_args()


class Comparison:
    def __init__(self):
        self.differences = []
        self.compared = 0

    def equal(self, what, ours, wanted):
        self.compared += 1
        if ours != wanted:
            self.differences.append(f"{what}: {ours!r}, expected {wanted!r}")


class Run:
    """One run of the program in a folder of its own."""

    def __init__(self, arguments, folder, traced):
        self.arguments = arguments
        self.folder = folder
        self.traced = traced
        folder.mkdir()
        self.traces_folder = folder / "traces"
        self.traces_folder.mkdir()
        done = subprocess.run(self.command(), env=self.environment(), cwd=folder, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=420,
                              check=False)
        self.status, self.out, self.err = done.returncode, done.stdout, done.stderr

    def command(self):
        arguments = self.arguments
        command = [str(arguments.bin / "vramscope"), "run", "-o", f"{self.traces_folder}/", "--"]
        command = command if self.traced else []
        command += [arguments.simgpu, "--memory", arguments.memory, *COSTS]
        command += ["--preload", "no" if arguments.local else "yes", "--"]
        command += self.preloading()
        command += [arguments.python]
        command += [str(LOAD_LOCAL)] if arguments.local else []
        return command + arguments.program

    def preloading(self):
        library = self.arguments.first or self.arguments.second
        if not library:
            return []
        # Without the shim there is nothing to come after.
        place = "first" if self.arguments.first or not self.traced else "second"
        packages = subprocess.run(
            [self.arguments.python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
            stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
        return ["bash", "-c", PRELOAD[place], "preload", os.path.join(packages, library)]

    def environment(self):
        caches = {name: str(self.folder / name.lower()) for name in
                  ("HF_HOME", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "NUMBA_CACHE_DIR")}
        return dict(os.environ, OMP_NUM_THREADS="1", PYTHONWARNINGS="ignore", HF_HUB_OFFLINE="1",
                    VRAMSCOPE_SAMPLE="always", VRAMSCOPE_LOG="warn",
                    TRITON_LIBCUDA_PATH=str(self.arguments.bin.parent / "simgpu" / "lib"),
                    FRAMEWORKS_LOG=str(self.folder / "moments"), **caches)

    def moments(self):
        log = self.folder / "moments"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


class Trace:
    """What the command-line tool says of a trace file."""

    def __init__(self, tool, path):
        self.tool, self.path = tool, path
        self.report = json.loads(self.read("report", "--json").stdout)
        self.events = [json.loads(line) for line in self.read("dump", "--json").stdout.splitlines()]

    def read(self, *words):
        done = subprocess.run([str(self.tool), *words, str(self.path)], text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 0 and words[0] != "verify":
            raise SystemExit(f"vramscope {' '.join(words)}: status {done.returncode}\n{done.stdout}")
        return done

    def is_of_device(self):
        hooks = self.report["hooks"]
        return hooks["driver_events"] + hooks["runtime_events"] + hooks["framework_events"] > 0

    def curves(self):
        """{device: [(time_ns on the events' clock, row)]}"""
        rows = list(csv.DictReader(io.StringIO(self.read("timeline", "--csv").stdout)))
        start = self.start([int(row["time_ns"]) for row in rows[:50]])
        curves = {}
        for row in rows:
            curves.setdefault(int(row["device"]), []).append((start + int(row["time_ns"]), row))
        return curves

    def start(self, times):
        """The curve's zero on the clock of the events: each row's time is an event's."""
        known = {event["time_ns"] for event in self.events}
        for first in sorted(known):
            if all(first - times[0] + time in known for time in times):
                return first - times[0]
        raise SystemExit("no time of the curve is the time of an event")

    def framework_events(self, until_ns):
        return sum(event["kind"] in ("fw_alloc", "fw_free") and event.get("device") == 0
                   and event["time_ns"] <= until_ns for event in self.events)


def bytes_said(trace, curve, moment, column):
    """What the trace says at the moment. A column max_X is the highest X until then."""
    if column == "framework_events":
        return trace.framework_events(moment["time_ns"])
    until = bisect.bisect_right([time for time, _ in curve], moment["time_ns"])
    if column.startswith("max_"):
        return max((int(row[f"{column[4:]}_bytes"]) for _, row in curve[:until]), default=None)
    value = curve[until - 1][1][f"{column}_bytes"] if until else ""
    return int(value) if value else None


def compare_moment(check, trace, curve, moment):
    for column, wanted in dict(moment["expected"], unexplained=0).items():
        check.equal(f"{moment['name']}: {column}", bytes_said(trace, curve, moment, column), wanted)


def compare_trace(check, trace, moments):
    said = trace.report["trace"]
    for what, wanted in (("lost", 0), ("torn", 0), ("complete", True), ("ended", "exit")):
        check.equal(what, said[what], wanted)
    for device in trace.report["devices"]:
        check.equal(f"device {device['index']} mismatches", device["framework"]["mismatches"], 0)
    curves = trace.curves()
    for device in trace.report["devices"]:
        last = curves[device["index"]][-1][1]
        for band in ("device", "allocated", "reserved", "backed", "unexplained"):
            check.equal(f"the report's end: {band}", str(device["end"][f"{band}_bytes"]),
                        last[f"{band}_bytes"])
    for moment in moments:
        compare_moment(check, trace, curves.get(moment["device"], []), moment)
    verify = trace.read("verify")
    check.equal("verify", verify.returncode, 0)
    if verify.returncode != 0:
        print(verify.stdout)


def print_run(name, run):
    print(f"---- {name}: status {run.status}")
    sys.stdout.write(run.out)
    print(f"---- {name}: its errors")
    print(run.err[-4000:])
    sys.stdout.flush()


def compare(check, arguments, folder):
    plain = Run(arguments, folder / "plain", traced=False)
    print_run("without vramscope", plain)
    check.equal("status without vramscope", plain.status, 0)
    traced = Run(arguments, folder / "traced", traced=True)
    print_run("with vramscope", traced)
    check.equal("status", traced.status, plain.status)
    check.equal("output", traced.out, plain.out)
    moments = traced.moments()
    check.equal("moments", [moment["name"] for moment in moments],
                [moment["name"] for moment in plain.moments()])
    check.equal("there are moments", len(moments) > 0, True)
    check.equal("the books at them", [moment["expected"] for moment in moments],
                [moment["expected"] for moment in plain.moments()])
    traces = [Trace(arguments.bin / "vramscope", path)
              for path in sorted(traced.traces_folder.glob("*.vscope"))]
    check.equal("traces", [trace.is_of_device() for trace in traces], [True])
    if traces:
        compare_trace(check, traces[0], moments)
        say_figures(traces[0], moments)


def say_figures(trace, moments):
    hooks = trace.report["hooks"]
    print(f"{hooks['driver_events']} driver, {hooks['runtime_events']} runtime, "
          f"{hooks['framework_events']} framework events; device bytes by the books: "
          + ", ".join(f"{moment['name']} {moment['expected']['device']}" for moment in moments))


def main():
    arguments = parse_arguments()
    if not arguments.python:
        print("no environment: set VRAMSCOPE_FRAMEWORKS_PYTHON (scripts/frameworks-env prints it)")
        return SKIPPED
    check = Comparison()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="vramscope-frameworks-"))
    try:
        compare(check, arguments, folder)
        if check.differences and os.environ.get("FRAMEWORKS_KEEP"):
            shutil.copytree(folder, os.environ["FRAMEWORKS_KEEP"], dirs_exist_ok=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for difference in check.differences:
        print(f"DIFFERENT {difference}")
    print(f"{check.compared} figures compared, {len(check.differences)} different")
    return 1 if check.differences else 0


if __name__ == "__main__":
    sys.exit(main())
