# SPDX-License-Identifier: Apache-2.0
"""What the collector's tests share: the built things, a stand-in producer, and
the report that a collector writes for `vramscope run`. Standard library only."""

import fcntl
import glob
import os
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("VS_TEST_BUILD", os.path.join(ROOT, "build", "release"))
TOOL = os.path.join(BUILD, "bin", "vramscope")
COLLECTOR = os.path.join(BUILD, "bin", "vramscope-collector")
PRODUCER = os.path.join(BUILD, "torture", "fake_producer")


def equal(what, got, wanted):
    if got != wanted:
        raise AssertionError(f"{what}: got {got!r}, wanted {wanted!r}")


def check(holds, text):
    if not holds:
        raise AssertionError(text)


class Lab:
    """A folder for one test, with `out` for traces and `reports` for VRAMSCOPE_RUN_DIR."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="vs-collector-")
        self.out = os.path.join(self.folder, "out") + "/"
        self.reports = os.path.join(self.folder, "reports")
        os.mkdir(self.out)
        os.mkdir(self.reports)

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def environment(self, extra=None):
        env = {k: v for k, v in os.environ.items()
               if not k.startswith(("VRAMSCOPE_", "LD_PRELOAD"))}
        env["VRAMSCOPE_RUN_DIR"] = self.reports
        env.update(extra or {})
        return env

    def start(self, *words, output=None, env=None, **options):
        return subprocess.Popen([PRODUCER, COLLECTOR, output or self.out, *words],
                                env=self.environment(env), stdout=subprocess.PIPE, text=True,
                                **options)

    def produce(self, *words, output=None, env=None, **options):
        """Runs a producer to its end; returns (exit status, its words, the collector's report)."""
        process = self.start(*words, output=output, env=env, **options)
        said, _ = process.communicate(timeout=120)
        return process.returncode, said, self.report(process.pid)

    def report(self, pid, seconds=20):
        """The last word of the collector of `pid`."""
        path = os.path.join(self.reports, f"{pid}.trace")
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            found = read_report(path)
            if found and found.get("finished") == "1" and not is_locked(path):
                return found
            time.sleep(0.01)
        raise AssertionError(f"no finished report {path}: {read_report(path)}")

    def traces(self):
        return sorted(glob.glob(self.out + "*"))


def read_report(path):
    """None while there is none, or only a part of one is written."""
    try:
        with open(path, encoding="utf-8") as file:
            return dict(line.rstrip("\n").split(" ", 1) for line in file)
    except (OSError, ValueError):
        return None


def is_locked(path):
    with open(path, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def collectors_of(target):
    """Living collectors of a traced process."""
    found = []
    for folder in glob.glob("/proc/[0-9]*"):
        try:
            with open(folder + "/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if words[0] == b"vramscope-collector" and str(target).encode() in words:
            found.append(int(folder[6:]))
    return found


def cpu_and_switches(pid):
    """Processor ticks used, and how often all its threads went to sleep."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        fields = file.read().rpartition(")")[2].split()
    switches = 0
    for status in glob.glob(f"/proc/{pid}/task/*/status"):
        with open(status, encoding="utf-8") as file:
            switches += next(int(line.split()[1]) for line in file
                             if line.startswith("voluntary_ctxt_switches"))
    return int(fields[11]) + int(fields[12]), switches


def run_tests(module):
    """Runs each test_* function of a module with a fresh Lab; exit status as a test wants it."""
    wanted = sys.argv[1:]
    failed = 0
    for name, test in sorted(vars(module).items()):
        if not name.startswith("test_") or (wanted and name not in wanted):
            continue
        lab = Lab()
        began = time.monotonic()
        try:
            test(lab)
            print(f"ok    {name} ({time.monotonic() - began:.1f} s)", flush=True)
        except Exception:  # noqa: BLE001 - whatever it is, the test has failed
            failed += 1
            print(f"FAIL  {name}\n{traceback.format_exc()}", flush=True)
        finally:
            lab.close()
    return 1 if failed else 0
