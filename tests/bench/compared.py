#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One training-like program of real PyTorch's, on the simulated device, under one tool after the
other: what it costs, how much is written, and which memory each tool's file tells of, also when the
program is killed. Prints Markdown; scripts/bench compared runs it.

  compared.py --build FOLDER --python PYTHON-WITH-TORCH-AND-MEMRAY [--turns N] [--steps N]
  compared.py … --check PAGE      the rows of facts are those of the page; exit status 1 if not"""
import argparse
import json
import os
import pathlib
import pickle
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PROGRAM = HERE / "compared_train.py"
MIB = 1 << 20

# Each size is that of one thing only. PyTorch takes a segment of its own for a tensor of 10 MiB or more.
TENSOR, SEGMENT, ARRAY, LIBRARY = 49 * MIB // 2, 26 * MIB, 31 * MIB + 1, 78 * MIB
CONTEXT, OTHER, LAST_TENSOR, LAST_ARRAY = 302 * MIB, 1234 * MIB, 86 * MIB, 53 * MIB + 1
FACTS = [
    ("a tensor", TENSOR),
    ("the segment that PyTorch reserved for it", SEGMENT),
    ("cudaMalloc by a C library with a static runtime", LIBRARY),
    ("the CUDA context", CONTEXT),
    ("another process on the device", OTHER),
    ("an array of NumPy on the host", ARRAY),
]
PYTHON_LINES = {"tensor": "take_tensor", "array": "take_array"}


class Tool:
    """How a tool is started around the program, and what can be read of its file."""

    def __init__(self, name, command, arguments=lambda file: [], read=None):
        self.name, self.command, self.arguments, self.read = name, command, arguments, read


def integers(value):
    """Every integer anywhere in what JSON or a pickle holds."""
    todo, found = [value], set()
    while todo:
        item = todo.pop()
        if isinstance(item, dict):
            todo.extend(item.values())
        elif isinstance(item, (list, tuple)):
            todo.extend(item)
        elif isinstance(item, int):
            found.add(item)
    return found


def text_of(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300, check=False)
    return done.stdout if done.returncode == 0 else None


def read_vramscope(build):
    def read(file):
        text = text_of([build / "bin" / "vramscope", "report", "--json", file])
        return None if text is None else (integers(json.loads(text)), text)
    return read


def read_snapshot(file):
    with open(file, "rb") as opened:
        snapshot = pickle.load(opened)
    return integers(snapshot), str({frame.get("name") for trace in snapshot["device_traces"]
                                    for event in trace for frame in event.get("frames", [])})


MEMRAY_READER = """
import json, memray, sys
wanted = set(map(int, sys.argv[2:]))
reader, sizes, names = memray.FileReader(sys.argv[1]), set(), set()
for record in reader.get_allocation_records():
    if record.size in wanted:
        sizes.add(record.size)
        names.update(frame[0] for frame in record.stack_trace())
print(json.dumps([sorted(sizes), sorted(names)]))
"""


def read_memray(python):
    wanted = [size for _, size in FACTS] + [LAST_TENSOR, LAST_ARRAY]
    def read(file):
        text = text_of([python, "-c", MEMRAY_READER, file, *wanted])
        return None if text is None else (set(json.loads(text)[0]), text)
    return read


def read_heaptrack(file):
    """Lines `a SIZE TRACE` are allocations, `s LENGTH NAME` names; numbers are hexadecimal."""
    opened = subprocess.run(["zstd", "-dc", str(file)], capture_output=True, check=False)
    lines = opened.stdout.decode(errors="replace").splitlines()
    sizes = {int(line.split()[1], 16) for line in lines if line.startswith("a ")}
    if not sizes or text_of(["heaptrack_print", file]) is None:
        return None
    return sizes, "\n".join(line for line in lines if line.startswith("s "))


def tools(build, python):
    memray = [python, "-m", "memray", "run", "-q", "-f", "-o"]

    def snapshot(stacks):
        return lambda file: ["--record", stacks, "--save", file]

    return [
        Tool("nothing", lambda file: [python]),
        Tool("vramscope", lambda file: [build / "bin" / "vramscope", "run", "-o", file, "--", python],
             read=read_vramscope(build)),
        Tool('PyTorch, stacks="python"', lambda file: [python], snapshot("python"), read_snapshot),
        Tool('PyTorch, stacks="all"', lambda file: [python], snapshot("all"), read_snapshot),
        Tool("memray", lambda file: [*memray, file], read=read_memray(python)),
        Tool("memray --native", lambda file: [*memray, file, "--native"], read=read_memray(python)),
        Tool("heaptrack", lambda file: ["heaptrack", "-o", file, python], read=read_heaptrack),
    ]


def file_of(tool, folder):
    """heaptrack adds the name of its compression."""
    return pathlib.Path(f"{folder}/out" + (".vscope" if tool.name == "vramscope" else ""))


def written(folder):
    return [path for path in pathlib.Path(folder).iterdir() if path.is_file()]


def wait_for_file(folder):
    """What finishes a file after its program was killed has a moment for it."""
    size, until = -1, time.monotonic() + 20
    while time.monotonic() < until:
        now = sum(path.stat().st_size for path in written(folder))
        if now == size:
            return
        size = now
        time.sleep(1)


def run(tool, build, steps, folder, dies=False):
    """Wall seconds and what the program said; None where it was killed, as it was to be."""
    file = file_of(tool, folder)
    command = [ROOT / "scripts" / "simgpu", "--memory", "16G", "--context", str(CONTEXT),
               "--other", f"{OTHER}@0s:7777", "--", *tool.command(file), PROGRAM,
               "--steps", steps, "--library", build / "layers" / "lib" / "libcufft-0123abcd.so.12",
               "--bytes", TENSOR, ARRAY, LIBRARY, *tool.arguments(file)]
    if dies:
        command += ["--last", LAST_TENSOR, LAST_ARRAY]
    began = time.monotonic()
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=500, check=False,
                          env=dict(os.environ, VRAMSCOPE_BUILD=str(build), VRAMSCOPE_LOG="error"))
    wall = time.monotonic() - began
    if dies:
        if "{" in done.stdout or done.returncode == 0 and tool.name != "heaptrack":
            raise SystemExit(f"compared: under {tool.name} the program was not killed")
        wait_for_file(folder)
        return wall, None
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not lines:
        raise SystemExit(f"compared: under {tool.name} the program ended with {done.returncode}\n{done.stderr[-2000:]}")
    return wall, json.loads(lines[-1])


def in_folder(action):
    folder = tempfile.mkdtemp(prefix="vramscope-bench-")
    try:
        return action(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def look(tool, folder):
    """What is in the file: (integers, text); None: there is none, or nothing reads it."""
    files = written(folder)
    return tool.read(files[0]) if files else None


def yes(truth):
    return "yes" if truth else "no"


class Measured:
    """All of one tool's turns: seconds of a step by the clock and of processor time, and of the run."""

    def __init__(self):
        self.steps, self.processor, self.walls, self.bytes, self.events, self.facts = [], [], [], None, None, []

    def turn(self, tool, build, steps):
        def measure(folder):
            wall, said = run(tool, build, steps, folder)
            self.walls.append(wall)
            self.steps.append(said["step"])
            self.processor.append(said["processor"])
            self.events = said["events"]
            self.bytes = sum(path.stat().st_size for path in written(folder))
            if tool.read and not self.facts:
                self.note(look(tool, folder))
        in_folder(measure)

    def note(self, found):
        sizes, text = found if found is not None else (set(), "")
        self.facts = [yes(size in sizes) for _, size in FACTS]
        lines = [what for what, name in PYTHON_LINES.items() if name in text]
        self.facts.append("of the " + " and the ".join(lines) if lines else "no")

    def kill(self, tool, build, steps):
        def measure(folder):
            run(tool, build, steps, folder, dies=True)
            found = look(tool, folder)
            self.facts.append(yes(found is not None))
            last = [what for what, size in (("tensor", LAST_TENSOR), ("array", LAST_ARRAY))
                    if found is not None and size in found[0]]
            self.facts.append("the " + " and the ".join(last) if last else "no")
        in_folder(measure)


def fact_rows(kinds, measured):
    names = [what for what, _ in FACTS] + ["the line of Python", "after SIGKILL the file can be read",
                                           "in it, what was taken right before SIGKILL"]
    return [f"| {name} | " + " | ".join(measured[tool.name].facts[i] for tool in kinds if tool.read) + " |"
            for i, name in enumerate(names)]


def times(its, alone):
    """Best turn against best turn."""
    return f"× {min(its) / min(alone):.2f}"


def print_costs(kinds, measured):
    alone = measured["nothing"]
    print("| under | training step: processor time of the program | training step by the clock | "
          "whole run by the clock | it wrote | bytes per event of PyTorch's |")
    print("|---|---|---|---|---|---|")
    print(f"| nothing | {1000 * min(alone.processor):.2f} ms | {1000 * min(alone.steps):.2f} ms | "
          f"{min(alone.walls):.1f} s | | |")
    for tool in kinds[1:]:
        its = measured[tool.name]
        print(f"| {tool.name} | {times(its.processor, alone.processor)} | {times(its.steps, alone.steps)} | "
              f"{times(its.walls, alone.walls)} | {its.bytes / MIB:.2f} MiB | {its.bytes / its.events:.1f} |")


def versions(python):
    memray = text_of([python, "-c", "import memray; print(memray.__version__)"]).strip()
    torch = text_of([python, "-c", "import torch; print(torch.__version__)"]).strip()
    heaptrack = text_of(["heaptrack", "--version"]).split()[-1]
    return f"PyTorch {torch}, memray {memray}, heaptrack {heaptrack}"


def check(page, rows):
    wanted = {line.strip() for line in page.read_text(encoding="utf-8").splitlines()}
    missing = [row for row in rows if row not in wanted]
    for row in missing:
        print(f"{page} does not have: {row}", file=sys.stderr)
    return 1 if missing else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--python", required=True, help="one with PyTorch and memray: scripts/memray-env")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--check", type=pathlib.Path, metavar="PAGE")
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    kinds = tools(build, arguments.python)
    measured = {tool.name: Measured() for tool in kinds}
    for _ in range(arguments.turns):
        for tool in kinds:
            measured[tool.name].turn(tool, build, arguments.steps)
    for tool in kinds:
        if tool.read:
            measured[tool.name].kill(tool, build, arguments.steps)
    rows = fact_rows(kinds, measured)
    if arguments.check:
        return check(arguments.check, rows)
    print(f"{versions(arguments.python)}. {arguments.turns} turns of each by turns, the best of them; "
          f"{arguments.steps} steps, {measured['nothing'].events} events of PyTorch's; load average "
          f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs.\n")
    print_costs(kinds, measured)
    named = [tool.name for tool in kinds if tool.read]
    print(f"\n| its file tells of | {' | '.join(named)} |\n|---|{'---|' * len(named)}")
    print("\n".join(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
