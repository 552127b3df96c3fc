#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Host memory in the report against PyTorch's own statistics and /proc: pinned, registered,
in /dev/shm (workers' files and removed ones too, each once), resident.

usage: host.py --bin DIR --simgpu SCRIPT [--python PYTHON]
Exit status: 0 as it should be, 1 not, 77 no PyTorch here.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import real_torch

MIB = 1 << 20
PROGRAMS = pathlib.Path(__file__).parent / "programs"
KIB = 1 << 10
# Pages that come and go between the program's look and the collector's.
RESIDENT_SLACK = 8 * MIB


def run(arguments, program, **settings):
    """What the program said, its report, and the page."""
    environment = dict(os.environ, OMP_NUM_THREADS="1", VRAMSCOPE_LOG="warn",
                       VRAMSCOPE_EXIT_WAIT_MS="60000", **settings)
    with tempfile.TemporaryDirectory(prefix="vramscope-host-") as folder:
        done = subprocess.run([arguments.bin / "vramscope", "run", "-o", f"{folder}/", "--",
                               arguments.simgpu, "--", arguments.python, PROGRAMS / program],
                              env=environment, stdout=subprocess.PIPE, text=True, timeout=500,
                              check=True)
        said = json.loads(done.stdout.splitlines()[-1])
        for trace in sorted(pathlib.Path(folder).rglob("*.vscope")):
            report = real_torch.report_of(arguments, trace)
            if report["process"]["pid"] == said["pid"]:
                return said, report, real_torch.page_of(arguments, trace)
    raise SystemExit("the program left no trace")


def cgroup_limit():
    """The tightest limit of the groups this test, and what it starts, is in; None without."""
    limits = []
    for line in pathlib.Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines():
        _, controllers, group = line.split(":", 2)
        if controllers == "":
            root, name = pathlib.Path("/sys/fs/cgroup"), "memory.max"
        elif controllers == "memory":
            root, name = pathlib.Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"
        else:
            continue
        folder = root / group.lstrip("/")
        for place in (folder, *folder.parents):
            if place.is_relative_to(root) and (place / name).exists():
                text = (place / name).read_text(encoding="ascii").strip()
                if text.isdigit() and int(text) < (1 << 62):
                    limits.append(int(text))
    return min(limits, default=None)


def faults(said, report, page):
    end = report["devices"][0]["end"]
    exact = {"host_shared_bytes": said["shared"],
             "host_registered_bytes": said["registered"],
             "cgroup_limit_bytes": cgroup_limit()}
    if said["allocated"] is not None:
        exact["host_framework_bytes"] = said["allocated"]
        exact["host_pinned_requested_bytes"] = said["allocated"] + said["registered"]
    found = [f"{name}: {end[name]}, expected {value}" for name, value in exact.items()
             if end[name] != value]
    if said["shared"] < said["waiting"] + said["removed"]:
        found.append(f"the program itself sees too little in /dev/shm: {said}")
    if not 3 * MIB <= said["torch_mapped"] <= end["host_shared_bytes"]:
        found.append(f"mapped of PyTorch's files: {said['torch_mapped']}")
    if said["active"] is not None and not (
            0 < said["active"] < said["allocated"]
            and end["host_framework_rounding_at_most_bytes"] < said["allocated"]):
        found.append(f"in use {said['active']} of {said['allocated']}: {end}")
    if abs(end["host_rss_bytes"] - said["resident"]) > RESIDENT_SLACK:
        found.append(f"resident: {end['host_rss_bytes']}, expected about {said['resident']}")
    if (end["cgroup_used_bytes"] is None) != (end["cgroup_limit_bytes"] is None):
        found.append(f"a container's use without its limit, or the other way round: {end}")
    for text in (f"in {said['shared_count']} files in /dev/shm", "of it PyTorch's",
                 "pinned by the framework's host cache", "rounding to powers of two",
                 "12.0 KiB of it registered"):
        if text not in page:
            found.append(f"{text!r} is not on the page:\n{page}")
    return found


def faults_of_limit(said, report, page):
    """A power of two above the limit was asked for as it is: only the small block may be rounded."""
    end = report["devices"][0]["end"]
    found = [] if said["allocated"] == 512 * KIB + 5124 * KIB else [
        f"this PyTorch rounds otherwise: {said['allocated']}"]
    if end["host_framework_bytes"] != said["allocated"]:
        found.append(f"{end['host_framework_bytes']} in the cache, expected {said['allocated']}")
    if end["host_framework_rounding_at_most_bytes"] != 256 * KIB - 1:
        found.append(f"rounding: {end['host_framework_rounding_at_most_bytes']}")
    if "pinned_max_round_threshold_mb" in page:
        found.append(f"a setting that is in use is recommended:\n{page}")
    return found


def check(arguments):
    wrong = faults(*run(arguments, "host.py"))
    wrong += faults_of_limit(*run(arguments, "pinned_rounding.py",
                                  PYTORCH_ALLOC_CONF="pinned_max_round_threshold_mb:1"))
    for fault in wrong:
        print(f"WRONG {fault}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(real_torch.run_test(check))
