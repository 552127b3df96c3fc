#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Processor time of the collector, its process for names included, while real PyTorch
trains with both stacks at about 100,000 events a second. A short and a long run: their
difference is what events cost, the rest what each traced process costs once (start,
names). Prints Markdown; scripts/bench collector runs it.

  collector_cpu.py --build FOLDER --python PYTHON-WITH-TORCH"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
STEPS = (500, 3500)
RATE = 100000
ASKED_RATE = 132000  # size_train.py takes a step for 800 events; it has some 610
TURNS = 3
POLL_S = 0.02
WANTED = 5  # percent of a core


def stat(pid):
    """Name, parent, and seconds of processor time with threads; None when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            name, rest = file.read().split("(", 1)[1].rsplit(")", 1)
    except OSError:
        return None
    fields = rest.split()
    return name, int(fields[1]), (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def writes_into(pid, folder):
    try:
        return any(os.readlink(f"/proc/{pid}/fd/{fd}").startswith(folder)
                   for fd in os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return False


class Watch:
    """The collectors that write into a folder, and their children."""

    def __init__(self, folder):
        self.folder, self.seconds, self.known = folder, {}, set()

    def look(self):
        """Processor time only grows: the last look at a process is nearly all of it."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            found = stat(pid)
            if found is None or not found[0].startswith("vramscope-"):
                continue
            if pid not in self.known and (str(found[1]) in self.known or writes_into(pid, self.folder)):
                self.known.add(pid)
            if pid in self.known:
                self.seconds[pid] = found[2]

    def total(self):
        return sum(self.seconds.values())


def run(build, python, steps):
    folder = tempfile.mkdtemp(prefix="vramscope-bench-")
    command = [build / "bin" / "vramscope", "run", "-o", f"{folder}/", "--", ROOT / "scripts" / "simgpu", "--",
               python, HERE / "size_train.py", "fixed", str(steps), str(ASKED_RATE)]
    try:
        began, watch = time.monotonic(), Watch(folder)
        with subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, errors="replace",
                              env=dict(os.environ, VRAMSCOPE_BUILD=str(build), VRAMSCOPE_LOG="error")) as traced:
            while traced.poll() is None:
                watch.look()
                time.sleep(POLL_S)
            wall, said = time.monotonic() - began, traced.stderr.read()
        if traced.returncode != 0:
            raise SystemExit(f"bench: the training loop ended with {traced.returncode}\n{said}")
        traces = list(pathlib.Path(folder).glob("*.vscope"))
        report = subprocess.run([str(build / "bin" / "vramscope"), "report", "--json", str(traces[0])],
                                stdout=subprocess.PIPE, check=True, text=True)
        trace = json.loads(report.stdout)["trace"]
        return {"cpu": watch.total(), "wall": wall, "events": trace["events"], "lost": trace["lost"]}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--python", required=True)
    arguments = parser.parse_args()
    turns = []
    for _ in range(TURNS):
        short, long = (run(arguments.build.resolve(), arguments.python, steps) for steps in STEPS)
        events = long["events"] - short["events"]
        each = (long["cpu"] - short["cpu"]) / events
        turns.append({"ns": 1e9 * each, "percent": 100 * each * RATE, "once": short["cpu"] - each * short["events"],
                      "rate": events / (long["wall"] - short["wall"]), "lost": short["lost"] + long["lost"]})
    print(f"Load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs.\n")
    print("| events per second | lost | collector: ns per event | % of a core at 100,000/s (at most "
          f"{WANTED} wanted) | once per process: ms |")
    print("|---|---|---|---|---|")
    for turn in turns:
        print(f"| {turn['rate']:,.0f} | {turn['lost']} | {turn['ns']:.0f} | {turn['percent']:.1f} | "
              f"{1000 * turn['once']:.0f} |")


if __name__ == "__main__":
    main()
