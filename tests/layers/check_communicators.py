#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NCCL's communicators in the report: how many, whose, their bytes as the library took them;
24 made and destroyed are no growth, one left in each step is, with its line.

usage: check_communicators.py --folder LIBRARIES --bin DIR --simgpu SCRIPT
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

MIB = 1 << 20
PROGRAM = pathlib.Path(__file__).resolve().parent / "communicators_program.py"
wrong = []


def expect(what, found, wanted):
    if found != wanted:
        wrong.append(f"{what}: {found}, not {wanted}")


def run(command):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True,
                          timeout=60, check=False, env=dict(os.environ, VRAMSCOPE_LOG="error"))
    if done.returncode != 0:
        sys.exit(f"{command}: status {done.returncode}")
    return done.stdout


def trace(given, folder, name, command):
    path = pathlib.Path(folder) / f"{name}.vst"
    tool = given.bin / "vramscope"
    run([given.simgpu, "--", tool, "run", "-o", path, "--", *command])
    run([tool, "verify", path])
    return json.loads(run([tool, "report", "--json", path])), run([tool, "report", path])


def communicators_of(report):
    return next(found for found in report["objects"] if found["kind"] == "communicator")


def check_linked(report, page):
    objects = communicators_of(report)
    expect("made", (objects["live"], objects["created"], objects["destroyed"]), (4, 5, 1))
    listed = [(each["ranks"], each["rank"], each["device"], each["bytes"], each["live"])
              for each in report["communicators"]["list"]]
    # The first one was alone: what the library's own thread took is its as well.
    expect("communicators", sorted(listed),
           [(2, 0, 0, 0, True), (2, 1, 0, 0, True), (4, 1, 0, 4 * MIB, True),
            (8, 3, 0, 10 * MIB, True)])
    # The pair was made at once, and of the split's the library's thread took 2 MiB.
    expect("known", report["communicators"]["bytes"], 14 * MIB)
    expect("unsplit", report["communicators"]["unsplit_bytes"], (2 * (2 + 2) + 2) * MIB)
    owners = dict(report["devices"][0]["end"]["by_owner"])
    owners.pop("(rounding)", None)
    expect("owners", owners, {"libnccl": 24 * MIB, "communicators": 16 * MIB})
    failures = [(each["api"], each["error"], each["count"]) for each in report["failures"]]
    expect("failures", failures, [("ncclCommInitRank", "ncclInvalidArgument", 1)])
    section = page.split("NCCL communicators\n")[1].splitlines()
    expect("page", section[:2],
           ["  4 live of 5 made; 14.0 MiB of device memory is known to be theirs",
            "  10.0 MiB more of NCCL's: which of them it is for is not known"])


def lines_of(report, stack):
    site = next(site for site in report["sites"] if site["stack"] == stack)
    return [frame["line"] for frame in site["frames"] if frame["file"] == str(PROGRAM)]


def check_loop(report, leaks):
    objects = communicators_of(report)
    made = 48 if leaks else 24
    expect("made in the loop", (objects["live"], objects["created"], objects["destroyed"]),
           (made - 24, made, 24))
    grown = [each for each in report["growth"] if each["kind"] == "communicator"]
    if not leaks:
        expect("growth", report["growth"], [])
        expect("memory left", report["communicators"], {"bytes": 0, "unsplit_bytes": 0, "list": []})
        return
    expect("growing kinds of object", [(each["count_per_step"], each["end_count"])
                                       for each in grown], [(1, 24)])
    marked = [number for number, text in enumerate(PROGRAM.read_text().splitlines(), 1)
              if text.endswith("# LEAK")]
    expect("line", marked[0] in lines_of(report, grown[0]["stack"]), True)
    expect("bytes of each", {each["bytes"] for each in report["communicators"]["list"]},
           {4 * MIB})


def main():
    parser = argparse.ArgumentParser()
    for name in ("folder", "bin", "simgpu"):
        parser.add_argument(f"--{name}", required=True, type=pathlib.Path)
    given = parser.parse_args()
    loop = [sys.executable, PROGRAM, given.folder / "nccl" / "libnccl.so.2"]
    with tempfile.TemporaryDirectory() as folder:
        check_linked(*trace(given, folder, "linked", [given.folder / "communicators"]))
        check_loop(trace(given, folder, "healthy", loop)[0], False)
        check_loop(trace(given, folder, "leak", loop + ["leak"])[0], True)
    sys.exit("\n".join(wrong) or None)


if __name__ == "__main__":
    main()
