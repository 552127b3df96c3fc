#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plays a DataLoader whose workers use up the host's memory, or die: the page says that the device is
innocent, and of the kernel's out-of-memory killer what its own counter says; the healthy twin is
silent. The kernel's part needs a memory control group that we may make, and is left out without.

usage: check_workers.py --bin DIR --simgpu SCRIPT [--python PYTHON]
Exit status: 0 as expected, 1 not, 77 no PyTorch here.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "torch"))
import real_torch  # noqa: E402

MIB = 1 << 20
LIMIT = 1536 * MIB
PROGRAM = pathlib.Path(__file__).resolve().parent / "programs" / "torch_workers.py"
INNOCENT = "It failed (exit 1), and not for want of GPU memory."


class ControlGroup:
    """A group of our own with a limit, of cgroup v2 or v1; `folder` is None where none can be made."""

    def __init__(self):
        self.folder = None
        for line in pathlib.Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines():
            _, controllers, group = line.split(":", 2)
            if controllers == "memory":
                self.make("/sys/fs/cgroup/memory" + group, "memory.limit_in_bytes", "memory.memsw.limit_in_bytes")
                self.events = "memory.oom_control"
            elif not controllers and self.folder is None:
                self.make("/sys/fs/cgroup" + group, "memory.max", None)
                self.events = "memory.events"
            if self.folder is not None:
                return

    def make(self, parent, limit, with_swap):
        folder = pathlib.Path(parent) / f"vramscope-test-{os.getpid()}"
        try:
            folder.mkdir()
        except OSError:
            return
        try:
            (folder / limit).write_text(str(LIMIT), encoding="ascii")
            if with_swap and (folder / with_swap).exists():
                (folder / with_swap).write_text(str(LIMIT), encoding="ascii")
            self.folder = folder
        except OSError:
            folder.rmdir()

    def enter(self):
        (self.folder / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")

    def kills(self):
        found = re.search(r"^oom_kill (\d+)$", (self.folder / self.events).read_text(encoding="ascii"), re.M)
        return int(found[1]) if found else None

    def remove(self):
        for _ in range(100):  # until the last process of it is gone
            try:
                self.folder.rmdir()
                return
            except OSError:
                time.sleep(0.1)


def play(arguments, folder, words, group=None):
    """Status, report and page of one run."""
    command = [arguments.bin / "vramscope", "run", "-o", f"{folder}/", "--", arguments.simgpu, "--memory", "4G",
               "--", arguments.python, PROGRAM, *words]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=200,
                          check=False, preexec_fn=group.enter if group else None,
                          env=dict(os.environ, VRAMSCOPE_LOG="error"))
    traces = list(pathlib.Path(folder).rglob("*.vscope"))
    if len(traces) != 1:
        raise SystemExit(f"{len(traces)} traces of {words}:\n{done.stderr}")
    page = " ".join(real_torch.page_of(arguments, traces[0]).split())
    return done.returncode, real_torch.report_of(arguments, traces[0]), page


def faults_of(status, report, page, wanted_status, kills):
    device = report["devices"][0]
    figures = [("status", status, wanted_status), ("exit code", report["trace"]["exit_code"], wanted_status),
               ("complete", report["trace"]["complete"], True), ("kills", report["process"]["oom_kills"], kills),
               ("ooms", report["ooms"], []), ("grows", report["growth"], []), ("failures", report["failures"], []),
               ("unexplained on the device", device["end"]["unexplained_bytes"], 0)]
    faults = [f"{what} is {found}, not {wanted}" for what, found, wanted in figures if found != wanted]
    if (INNOCENT in page) != (wanted_status != 0):
        faults.append(f"innocent or not: {page[:300]}")
    if ("The kernel killed" in page) != (kills != 0):
        faults.append(f"killed or not: {page[:300]}")
    return faults


def faults_of_group(arguments, group):
    """What the kernel itself counted is the oracle."""
    with tempfile.TemporaryDirectory() as folder:
        status, report, page = play(arguments, folder, ["150"], group)
    kills = group.kills()
    faults = faults_of(status, report, page, 1, kills) + ([] if kills else ["nobody was killed"])
    said = f"The kernel killed {kills} process{'' if kills == 1 else 'es'} of its control group for want of host " \
           "memory, whose limit is 1.50 GiB."
    return faults + ([] if said in page else [f"{said!r} is not in {page[:400]}"])


def check(arguments):
    wrong, played = [], {"dies": (["1", "dies"], 1), "healthy": (["1"], 0)}
    for name, (words, status) in played.items():
        with tempfile.TemporaryDirectory() as folder:
            run = play(arguments, folder, words)
        wrong += [(name, fault) for fault in faults_of(*run, status, 0)]
    group = ControlGroup()
    if group.folder is None:
        print("left out: no memory control group can be made here")
        return real_torch.tell("WRONG", len(played), wrong)
    try:
        wrong += [("killed by the kernel", fault) for fault in faults_of_group(arguments, group)]
    finally:
        group.remove()
    return real_torch.tell("WRONG", len(played) + 1, wrong)


if __name__ == "__main__":
    sys.exit(real_torch.run_test(check))
