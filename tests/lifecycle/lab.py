# SPDX-License-Identifier: Apache-2.0
"""What the life-cycle tests share: where the built things are, how to run a
program plain, preloaded or under `vramscope run` on the simulated device, and
how to read a trace through the command-line tool. Standard library only."""

import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("VS_TEST_BUILD", os.path.join(ROOT, "build", "release"))
SLOW = os.environ.get("VS_TEST_SLOW") == "1"
SKIPPED = 77

TOOL = os.path.join(BUILD, "bin", "vramscope")
SHIM = os.path.join(BUILD, "lib", "libvramscope.so")
PROGRAMS = os.path.join(BUILD, "lifecycle")
SIMGPU = os.environ.get("VS_TEST_SIMGPU", os.path.join(ROOT, "scripts", "simgpu"))


class Failed(Exception):
    """A check that did not hold; its text says which and with what values."""


class Skip(Exception):
    """The machine lacks something the test needs."""


def check(holds, text):
    if not holds:
        raise Failed(text)


def equal(what, got, wanted):
    check(got == wanted, f"{what}: got {got!r}, wanted {wanted!r}")


def program(name):
    return os.path.join(PROGRAMS, name)


def need(tool):
    found = shutil.which(tool)
    if found is None:
        raise Skip(f"{tool} is not installed")
    return found


def need_namespaces():
    """unshare with a pid namespace of its own (root, or user namespaces)."""
    unshare = [need("unshare"), "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.geteuid() != 0:
        unshare.insert(1, "--map-root-user")
    if subprocess.run(unshare + ["true"], capture_output=True).returncode != 0:
        raise Skip("no pid namespaces here")
    return unshare


class Ended:
    """How a program ended: exit status (negative: signal), output, wall time."""

    def __init__(self, status, out, err, seconds):
        self.status, self.out, self.err, self.seconds = status, out, err, seconds

    def words(self, first):
        return [line.split() for line in self.out.splitlines() if line.startswith(first + " ")]


class Lab:
    """A folder for one test, and the ways to run programs in it."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="vs-lifecycle-")
        self.traces_folder = os.path.join(self.folder, "traces")
        os.mkdir(self.traces_folder)

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def environment(self, extra=None):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("VRAMSCOPE_", "LD_"))}
        env["VRAMSCOPE_BUILD"] = BUILD
        env.update(extra or {})
        return {k: v for k, v in env.items() if v is not None}

    def start(self, command, env=None, **options):
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        options.setdefault("cwd", self.folder)
        began = time.monotonic()
        process = subprocess.Popen(command, env=self.environment(env), text=True, errors="replace",
                                   start_new_session=True, **options)
        process.began = began
        return process

    def run(self, command, env=None, timeout=120, **options):
        return self.wait(self.start(command, env, **options), timeout)

    def wait(self, process, timeout=120):
        """How a started program ended; it and its group are killed after `timeout` seconds."""
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            raise Failed(f"did not end in {timeout} s: {' '.join(process.args)}\n{out}\n{err}") from None
        return Ended(process.returncode, out or "", err or "", time.monotonic() - process.began)

    def on_simgpu(self, command, *options):
        return [SIMGPU, *options, "--", *command]

    def preload_command(self, command, env=None):
        """Command and environment of a run on the simulated device with the shim in
        LD_PRELOAD only. simgpu appends its libraries to a preload that is there."""
        env = {"LD_PRELOAD": SHIM, "VRAMSCOPE_OUTPUT": self.traces_folder + "/", **(env or {})}
        return self.on_simgpu(command), env

    def preloaded(self, command, env=None, **options):
        return self.run(*self.preload_command(command, env), **options)

    def tool_run(self, command, *options):
        return [TOOL, "run", "-o", self.traces_folder + "/", *options, "--", *command]

    def traced(self, command, env=None, **options):
        return self.run(self.on_simgpu(self.tool_run(command)), env, **options)

    def plain(self, command, env=None, **options):
        return self.run(self.on_simgpu(command), env, **options)

    def traces(self):
        return sorted(glob.glob(os.path.join(self.traces_folder, "*.vscope")))

    def empty_traces(self):
        for path in glob.glob(os.path.join(self.traces_folder, "*")):
            os.unlink(path)

    def one_trace(self):
        found = self.traces()
        equal("number of traces", len(found), 1)
        return found[0]

    def wait_for_traces(self, count, seconds=10):
        """Traces whose collectors have gone (nobody has the file open for writing)."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            found = self.traces()
            if len(found) >= count and not any(is_open(path) for path in found):
                return found
            time.sleep(0.05)
        raise Failed(f"{count} finished traces expected in {seconds} s, there are "
                     f"{self.traces()}, open: {[p for p in self.traces() if is_open(p)]}")


def is_open(path):
    """Does any process have the file open?"""
    for link in glob.glob("/proc/[0-9]*/fd/*"):
        try:
            if os.readlink(link) == path:
                return True
        except OSError:
            continue
    return False


def tool(*arguments, timeout=120):
    done = subprocess.run([TOOL, *arguments], capture_output=True, text=True, timeout=timeout)
    return Ended(done.returncode, done.stdout, done.stderr, 0)


def report(trace, cut=False):
    """The JSON report. `cut`: the file may end inside a chunk, which the tool says with 1."""
    done = tool("report", "--json", trace)
    check(done.status in ((0, 1) if cut else (0,)),
          f"report {trace}: status {done.status}: {done.err}")
    return json.loads(done.out)


def events(trace):
    """Events of a whole trace as dictionaries, one at a time: it may have millions."""
    with subprocess.Popen([TOOL, "dump", "--json", trace], stdout=subprocess.PIPE, text=True) as dumping:
        for line in dumping.stdout:
            yield json.loads(line)
    equal(f"dump {trace}: status", dumping.returncode, 0)


def dump(trace, cut=False):
    """Events of a trace as dictionaries, in order."""
    done = tool("dump", "--json", trace)
    check(done.status in ((0, 1) if cut else (0,)),
          f"dump {trace}: status {done.status}: {done.err}")
    return [json.loads(line) for line in done.out.splitlines() if line.strip()]


def verify(trace, wanted=0):
    done = tool("verify", trace)
    check(done.status == wanted,
          f"verify {trace}: status {done.status}, wanted {wanted}:\n{done.out}{done.err}")
    return done


def processes():
    """Everything running: pid → (parent, name)."""
    table = {}
    for folder in glob.glob("/proc/[0-9]*"):
        try:
            with open(folder + "/stat", encoding="utf-8", errors="replace") as stat:
                text = stat.read()
        except OSError:
            continue
        name = text[text.index("(") + 1:text.rindex(")")]
        table[int(folder[6:])] = (int(text[text.rindex(")") + 2:].split()[1]), name)
    return table


def processes_about(folder):
    """Processes whose command line or environment names a folder of ours: pid → name."""
    found = {}
    for pid, (_, name) in processes().items():
        for what in ("cmdline", "environ"):
            try:
                with open(f"/proc/{pid}/{what}", "rb") as file:
                    if folder.encode() in file.read():
                        found[pid] = name
            except OSError:
                continue
    return found


def collectors_of(folder):
    """Collector processes that write into a folder of ours."""
    found = []
    for pid, (_, name) in processes().items():
        if not name.startswith("vramscope"):
            continue
        for link in glob.glob(f"/proc/{pid}/fd/*"):
            try:
                if os.readlink(link).startswith(folder):
                    found.append(pid)
                    break
            except OSError:
                continue
    return found


def say(text):
    print(text, flush=True)
    sys.stdout.flush()


def run_one(name, test):
    room = Lab()
    try:
        test(room)
    except Skip as why:
        say(f"{name}: skipped: {why}")
        return SKIPPED
    except Failed as why:
        say(f"{name}: FAILED: {why}")
        return 1
    except Exception:
        traceback.print_exc()
        return 1
    finally:
        room.close()
    say(f"{name}: ok")
    return 0


def run_named(tests, arguments):
    """Runs tests (name → function) by name, or lists them; the exit status."""
    if arguments == ["--list"]:
        say("\n".join(tests))
        return 0
    if not arguments or any(name not in tests for name in arguments):
        print("usage: run.py [--list] NAME…", file=sys.stderr)
        return 2
    results = [run_one(name, tests[name]) for name in arguments]
    return 1 if 1 in results else SKIPPED if SKIPPED in results else 0
