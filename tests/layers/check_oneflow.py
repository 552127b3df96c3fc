#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""OneFlow's caching allocator in the report, against the books of a program that uses it:
blocks, segments, what is free in them, and the request that it gives up on.

usage: check_oneflow.py --folder PROGRAMS --bin DIR --simgpu SCRIPT [--library LIBONEFLOW]
Without --library the real one, VRAMSCOPE_ONEFLOW_LIBRARY. Exit status 77 without it.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SKIPPED = 77
wrong = []


def expect(what, found, wanted):
    if found != wanted:
        wrong.append(f"{what}: {found}, not {wanted}")


def run(command, **variables):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True,
                          timeout=400, check=False, env=dict(os.environ, VRAMSCOPE_LOG="error", **variables))
    if done.returncode != 0:
        sys.exit(f"{command}: status {done.returncode}\n{done.stdout}")
    return done.stdout


def check(report, page, books):
    device, = [each for each in report["devices"] if each["index"] == 0]
    end, peak = device["end"], device["peak"]
    expect("allocated at the end", end["allocated_bytes"], books["live"])
    expect("allocated at the peak", peak["allocated_bytes"], books["peak"])
    expect("reserved", end["reserved_bytes"], books["reserved"])
    expect("cached", end["cached_bytes"], books["reserved"] - books["live"])
    expect("direct", end["direct_bytes"], 0)
    expect("free in segments", device["fragmentation"]["free_in_segments_bytes"],
           books["reserved"] - books["live"])
    blocks = [site for site in report["sites"] if site["layer"] == "framework"]
    expect("allocations", sum(site["allocs"] for site in blocks), books["allocations"])
    expect("live blocks", sum(site["end_count"] for site in blocks), books["blocks"])
    expect("sites' peaks", sum(site["peak_bytes"] for site in blocks), books["peak"])
    segments = [site for site in report["sites"] if site["layer"] == "driver" and site["end_bytes"]]
    expect("segments", ({site["segment"] for site in segments},
                        sum(site["end_bytes"] for site in segments)), ({True}, books["reserved"]))
    expect("no totals of its own", device["framework"]["reported_allocated_bytes"], None)
    oom, = report["ooms"]
    expect("out of memory", (oom["layer"], oom["requested_bytes"], oom["class"], oom["cached_bytes"]),
           ("framework", 200 << 30, "request_exceeds_device", end["cached_bytes"]))
    expect("attempts", {attempt["error"] for attempt in oom["attempts"]},
           {"CUDA_ERROR_OUT_OF_MEMORY"})
    expect("named on the page", "OneFlow" in page, True)
    expect("failures", report["failures"], [])


def main():
    parser = argparse.ArgumentParser()
    for name in ("folder", "bin", "simgpu"):
        parser.add_argument(f"--{name}", required=True, type=pathlib.Path)
    parser.add_argument("--library", default=os.environ.get("VRAMSCOPE_ONEFLOW_LIBRARY", ""))
    given = parser.parse_args()
    if not given.library:
        print("skipped: VRAMSCOPE_ONEFLOW_LIBRARY is not set (see scripts/oneflow-env)")
        sys.exit(SKIPPED)
    tool = given.bin / "vramscope"
    with tempfile.TemporaryDirectory() as folder:
        trace = pathlib.Path(folder) / "oneflow.vst"
        books = json.loads(run([given.simgpu, "--", tool, "run", "-o", trace, "--",
                                given.folder / "oneflow_user", given.library],
                               LD_LIBRARY_PATH=os.path.dirname(given.library)))
        run([tool, "verify", trace])
        check(json.loads(run([tool, "report", "--json", trace])), run([tool, "report", trace]),
              books)
    sys.exit("\n".join(wrong) or None)


if __name__ == "__main__":
    main()
