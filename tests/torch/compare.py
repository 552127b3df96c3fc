#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Traces one real PyTorch program on the simulated device and holds the report
against PyTorch's own statistics, to the byte.

usage: compare.py --bin DIR --simgpu SCRIPT --python PYTHON [options] PROGRAM [ARG ...]

The program ends by printing one JSON line: a list with one object per device of
the figures of torch.cuda.memory_stats it read last (see programs/figures.py).
Exit status: 0 equal, 1 different, 77 no PyTorch here.
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    parser.add_argument("--simgpu", required=True, help="the launcher; empty: this machine's GPU")
    parser.add_argument("--python", default=os.environ.get("VRAMSCOPE_TORCH_PYTHON", ""))
    parser.add_argument("--devices", default="1")
    parser.add_argument("--memory", default="16G")
    parser.add_argument("--alloc-conf", default="")
    parser.add_argument("--launcher", default="", help="words put before the program, e.g. torchrun's")
    parser.add_argument("--processes", type=int, default=1, help="traces with device events expected")
    parser.add_argument("--figures", type=int, default=None,
                        help="programs that print figures (default: all)")
    parser.add_argument("--no-events", action="store_true",
                        help="the backend makes no framework reports (cudaMallocAsync)")
    parser.add_argument("program", nargs=argparse.REMAINDER)
    return parser.parse_args()


def run_traced(arguments, folder):
    environment = dict(os.environ, OMP_NUM_THREADS="1", VRAMSCOPE_LOG="warn")
    if arguments.alloc_conf:
        environment["PYTORCH_CUDA_ALLOC_CONF"] = arguments.alloc_conf
        environment["PYTORCH_ALLOC_CONF"] = arguments.alloc_conf
    device = [arguments.simgpu, "--devices", arguments.devices, "--memory", arguments.memory,
              "--"] if arguments.simgpu else []
    command = [str(arguments.bin / "vramscope"), "run", "-o", f"{folder}/", "--",
               *device, arguments.python, *arguments.launcher.split(), *arguments.program]
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=500, check=False)


def figures_printed(output):
    return [json.loads(line) for line in output.splitlines() if line.startswith("[{")]


def reports_of(arguments, folder):
    reports = []
    for trace in sorted(pathlib.Path(folder).rglob("*.vscope")):
        done = subprocess.run([str(arguments.bin / "vramscope"), "report", "--json", str(trace)],
                              stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"report --json {trace} exited with {done.returncode}")
        reports.append((trace, json.loads(done.stdout)))
    return reports


def rank_of(report):
    return report["process"].get("rank") or 0


class Comparison:
    def __init__(self):
        self.differences = []
        self.compared = 0

    def equal(self, what, ours, theirs):
        self.compared += 1
        if ours != theirs:
            self.differences.append(f"{what}: trace says {ours}, expected {theirs}")


def compare_device(check, where, device, theirs):
    check.equal(f"{where} end allocated", device["end"]["allocated_bytes"], theirs["allocated"])
    check.equal(f"{where} end reserved", device["end"]["reserved_bytes"], theirs["reserved"])
    check.equal(f"{where} peak allocated", device["peak"]["allocated_bytes"], theirs["max_allocated"])
    check.equal(f"{where} peak reserved", device["peak"]["reserved_bytes"], theirs["max_reserved"])
    check.equal(f"{where} mismatches", device["framework"]["mismatches"], 0)


def compare_process(check, arguments, trace, report, figures):
    where = trace.name
    check.equal(f"{where} lost", report["trace"]["lost"], 0)
    check.equal(f"{where} torn", report["trace"]["torn"], 0)
    check.equal(f"{where} complete", report["trace"]["complete"], True)
    check.equal(f"{where} ended", report["trace"]["ended"], "exit")
    by_index = {device["index"]: device for device in report["devices"]}
    for index, theirs in enumerate(figures):
        if theirs["max_reserved"] == 0 and index not in by_index:
            continue
        compare_device(check, f"{where} device {index}", by_index[index], theirs)
    if not arguments.no_events:
        expected = sum(theirs["alloc_count"] + theirs["free_count"] for theirs in figures)
        check.equal(f"{where} framework events", report["hooks"]["framework_events"], expected)
    verify = subprocess.run([str(arguments.bin / "vramscope"), "verify", str(trace)],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    check.equal(f"{where} verify", verify.returncode, 0)
    if verify.returncode != 0:
        print(verify.stdout)


def main():
    arguments = parse_arguments()
    if not arguments.python:
        print("no PyTorch: set VRAMSCOPE_TORCH_PYTHON (scripts/torch-env prints it)")
        return SKIPPED
    folder = tempfile.mkdtemp(prefix="vramscope-torch-")
    try:
        done = run_traced(arguments, folder)
        sys.stdout.write(done.stdout)
        sys.stderr.write(done.stderr)
        if done.returncode == SKIPPED:
            return SKIPPED
        if done.returncode != 0:
            print(f"the program exited with {done.returncode}")
            return 1
        figures = figures_printed(done.stdout)
        reports = [pair for pair in reports_of(arguments, folder)
                   if pair[1]["hooks"]["framework_events"] or pair[1]["hooks"]["driver_events"]]
        reports.sort(key=lambda pair: rank_of(pair[1]))
        check = Comparison()
        check.equal("traces", len(reports), arguments.processes)
        check.equal("programs that printed figures", len(figures),
                    arguments.processes if arguments.figures is None else arguments.figures)
        figures.sort(key=lambda devices: devices[0].get("rank", 0))
        for (trace, report), theirs in zip(reports, figures):
            compare_process(check, arguments, trace, report, theirs)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for difference in check.differences:
        print(f"DIFFERENT {difference}")
    print(f"{check.compared} figures compared, {len(check.differences)} different")
    return 1 if check.differences or check.compared == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
