#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a stack costs beyond its event, each figure beside its baseline in the same
run. Prints Markdown; scripts/bench stacks runs it.

  stacks.py --build FOLDER [--python PYTHON-WITH-TORCH]"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
EVENTS, ROUNDS = 5000, 60  # short rounds are seldom interrupted
TURNS = 5


def words(output):
    return {line.split()[0]: float(line.split()[1]) for line in output.splitlines() if line.strip()}


def output_of(command, **options):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True,
                          timeout=200, check=False, **options)
    if done.returncode != 0:
        raise SystemExit(f"bench: {command[0]} ended with {done.returncode}")
    return done.stdout


def low_high(values):
    return f"{min(values):.0f}", f"{min(values):.0f} – {max(values):.0f}"


class Table:
    """One line per figure: what was asked for, what it is, the spread over the turns, beside what."""

    def __init__(self):
        self.rows = []

    def add(self, what, value, spread, beside, wanted, holds):
        self.rows.append((what, value, spread, beside, wanted, "yes" if holds else "**no**"))

    def print(self):
        print("| | best | over the turns | beside it | wanted | reached |")
        print("|---|---|---|---|---|---|")
        for row in self.rows:
            print("| " + " | ".join(row) + " |")


# ---- native and Python, by themselves ---------------------------------------------------------------

def heaptrack_added(build, folder):
    """ns per malloc or free that heaptrack adds on the same chain of calls; None: not installed."""
    if shutil.which("heaptrack") is None:
        return None
    program = [build / "bench" / "stack_bench", "heap", EVENTS, ROUNDS]
    added = []
    for turn in range(TURNS):
        plain = words(output_of(program))["heap"]
        out = output_of(["heaptrack", "--raw", "-o", f"{folder}/heap.{turn}", *program],
                        stderr=subprocess.DEVNULL)
        heap = [line.split()[1] for line in out.splitlines() if line.startswith("heap ")]
        if not heap:
            return None
        added.append(float(heap[0]) - plain)
    return min(added)


def native(table, build, folder):
    heaptrack = heaptrack_added(build, folder)
    beside = "heaptrack: not installed" if heaptrack is None else \
        f"heaptrack, the same chain: {heaptrack:.0f} per malloc or free"
    for name, what in (("stack_bench", "unwind tables"), ("stack_bench_fp", "built with frame pointers")):
        turns = [words(output_of([build / "bench" / name, "time", EVENTS, ROUNDS]))
                 for _ in range(TURNS)]
        added = [turn["native"] - turn["none"] for turn in turns]
        best, spread = low_high(added)
        method = "frame pointers" if turns[0]["method"] == 2 else "tables"
        table.add(f"native, depth 20, warm ({what}; found by {method}): ns added", best, spread,
                  f"{beside}; the event alone: {min(turn['none'] for turn in turns):.0f}",
                  "≤ 150", min(added) <= 150)


def python(table, build, interpreter):
    command = [interpreter, HERE / "stack_python.py", build / "bench" / "libstack_core.so", "time",
               EVENTS, ROUNDS]
    turns = [json.loads(output_of(command)) for _ in range(TURNS)]
    added = [turn["python"] - turn["none"] for turn in turns]
    both = [turn["both"] - turn["none"] for turn in turns]
    best, spread = low_high(added)
    version = output_of([interpreter, "-c", "import platform; print(platform.python_version())"]).strip()
    table.add(f"Python {version}, 30 frames, interned: ns added", best, spread,
              f"with the native stack too: {min(both):.0f}", "≤ 130", min(added) <= 130)


# ---- real PyTorch ----------------------------------------------------------------------------------------

def torch_turn(build, interpreter, folder, traced):
    environment = dict(os.environ, VRAMSCOPE_BUILD=str(build))
    device = [ROOT / "scripts" / "simgpu", "--"]
    program = [interpreter, HERE / "stack_torch.py"]
    if traced:
        command = [build / "bin" / "vramscope", "run", "-o", f"{folder}/", "--", *device, *program]
    else:
        command = [*device, *program, "--recorder"]
    return json.loads(output_of(command, env=environment, stderr=subprocess.DEVNULL).splitlines()[-1])


def torch(table, build, interpreter, folder):
    plain, traced = [], []
    for _ in range(TURNS):
        plain.append(torch_turn(build, interpreter, folder, False))
        traced.append(torch_turn(build, interpreter, folder, True))
    alone = min(turn["alone"] for turn in plain)
    ours = [turn["alone"] - alone for turn in traced]
    best, spread = low_high(ours)
    for name, stacks, part in (("recorder_all", "all", 4), ("recorder_python", "python", 3)):
        theirs = [turn[name] - turn["alone"] for turn in plain]
        table.add("PyTorch alloc/free loop, Python depth 20, both stacks: ns added per event", best,
                  spread, f'`_record_memory_history(stacks="{stacks}")` adds {min(theirs):.0f} '
                  f"({min(theirs):.0f} – {max(theirs):.0f}); the event alone: {alone:.0f}",
                  f"≤ 1/{part} of that", min(ours) <= min(theirs) / part)
    before = min(turn["step"] for turn in plain)
    percent = [100 * (turn["step"] / before - 1) for turn in traced]
    table.add("training step of a small transformer: % slower", f"{min(percent):.1f}",
              f"{min(percent):.1f} – {max(percent):.1f}",
              f"the step alone: {1000 * before:.2f} ms (its kernels take no time here)", "≤ 3",
              min(percent) <= 3)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--python", default=os.environ.get("VRAMSCOPE_TORCH_PYTHON", ""))
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    folder = tempfile.mkdtemp(prefix="vramscope-bench-")
    table = Table()
    try:
        native(table, build, folder)
        python(table, build, arguments.python or sys.executable)
        if arguments.python:
            torch(table, build, arguments.python, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"Over {TURNS} turns that alternate with their baselines; load average {os.getloadavg()[0]:.1f} "
          f"on {os.cpu_count()} CPUs.\n")
    table.print()
    if not arguments.python:
        print("\nReal PyTorch was not measured: set VRAMSCOPE_TORCH_PYTHON (scripts/torch-env prints it).")


if __name__ == "__main__":
    main()
