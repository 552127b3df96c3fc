#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The core of the shim without hooks: each mode of core_program runs without and
with it; what a shell sees must not differ, and what the stand-in for the
collector wrote down must be what formats/ring.h and shim/collector_start.h say."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

BUILD = os.path.abspath(sys.argv[1])
PROGRAM = os.path.join(BUILD, "core_program")
COLLECTOR = os.path.join(BUILD, "core_collector")
CORE = os.path.join(BUILD, "libvramscope_core.so")
EXIT, KILLED, EXEC = 1, 2, 3
SIGNALS_IGNORED = {1, 2, 3, 10, 12, 13, 15, 20, 21, 22, 24, 25}


class Skip(Exception):
    pass


def equal(what, got, wanted):
    if got != wanted:
        raise AssertionError(f"{what}: got {got!r}, wanted {wanted!r}")


def check(holds, text):
    if not holds:
        raise AssertionError(text)


class Log:
    """What one stand-in collector wrote."""

    def __init__(self, path):
        with open(path, encoding="utf-8", errors="replace") as file:
            self.lines = [line.rstrip("\n").split(" ", 1) for line in file]

    def all(self, word):
        return [line[1] for line in self.lines if line[0] == word and len(line) > 1]

    def one(self, word):
        found = self.all(word)
        equal(f"lines '{word}'", len(found), 1)
        return found[0]

    def events(self, kind):
        return [e.split() for e in self.all("event") if e.split()[2] == kind]

    def end(self):
        return tuple(int(word) for word in self.one("end").split())

    def lost(self):
        return {int(a): int(b) for a, b in (line.split() for line in self.all("lost")) if b != "0"}

    def complete(self):
        return ["done"] in self.lines


class Lab:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="vs-core-")
        self.out = self.folder + "/out/"
        os.mkdir(self.out)

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, mode, traced=True, before=(), cwd=None, **variables):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("VRAMSCOPE_", "LD_"))}
        if traced:
            env.update({"LD_PRELOAD": CORE, "VRAMSCOPE_COLLECTOR": COLLECTOR,
                        "VRAMSCOPE_OUTPUT": self.out})
            env.update(variables)
        env = {k: v for k, v in env.items() if v is not None}
        return subprocess.run([*before, PROGRAM, mode], env=env, capture_output=True, text=True,
                              timeout=60, cwd=cwd or self.folder, check=False)

    def logs(self, wanted):
        """The logs, once that many are complete."""
        deadline = time.monotonic() + 20
        while True:
            found = [Log(os.path.join(self.out, name)) for name in sorted(os.listdir(self.out))]
            if len(found) >= wanted and all(log.complete() for log in found):
                break
            check(time.monotonic() < deadline, f"{len(found)} logs, {wanted} wanted")
            time.sleep(0.05)
        equal("number of traces", len(found), wanted)
        for log in found:
            equal("faults", log.one("faults"), "0")
        return found

    def same_as_untraced(self, mode, traces=1, **options):
        plain = self.run(mode, traced=False)
        traced = self.run(mode, **options)
        equal(f"{mode}: exit status", traced.returncode, plain.returncode)
        equal(f"{mode}: output", traced.stdout, plain.stdout)
        equal(f"{mode}: errors", traced.stderr, "")
        return self.logs(traces)


# ---- what the program can notice ---------------------------------------------------------------

def test_nothing_to_notice(lab):
    (log,) = lab.same_as_untraced("notice")
    equal("events", len(log.events("alloc")), 10)
    equal("torn", log.one("torn"), "0")


def test_fatal_signals_look_untouched(lab):
    lab.same_as_untraced("signals")


def test_wait_loop_as_subreaper(lab):
    lab.same_as_untraced("reaper")


def test_wait_loop_as_pid_1(lab):
    jail = ["unshare", "--fork", "--pid", "--mount-proc"]
    if subprocess.run([*jail, "true"], capture_output=True, check=False).returncode != 0:
        raise Skip("no right to make a pid namespace")
    done = lab.run("reaper", before=jail)
    equal("output", done.stdout, "reaped 3 No child processes\n")
    equal("status", done.returncode, 0)
    # The namespace's end kills the collector as well: what was waited for is there.
    (name,) = os.listdir(lab.out)
    log = Log(os.path.join(lab.out, name))
    equal("end", log.events("end")[0][4:6], ["0", str(EXIT)])
    equal("events", len(log.events("alloc")), 10)


def test_no_cuda_means_nothing(lab):
    lab.same_as_untraced("no_cuda", traces=0)
    counts = []
    for preload in (None, CORE):
        trace = os.path.join(lab.folder, "calls")
        env = {"PATH": os.environ["PATH"], "VRAMSCOPE_OUTPUT": lab.out}
        words = ["strace", "-f", "-o", trace, *(["-E", f"LD_PRELOAD={preload}"] if preload else []),
                 PROGRAM, "no_cuda"]
        if shutil.which("strace") is None or subprocess.run(
                words, env=env, capture_output=True, check=False).returncode != 7:
            raise Skip("strace does not work here")
        with open(trace, encoding="utf-8", errors="replace") as file:
            counts.append([line.split("(")[0].split()[-1] for line in file if "(" in line])
    untraced, traced = counts
    added = list(traced)
    for call in untraced:
        if call in added:
            added.remove(call)
    print("  system calls added by loading it: " + " ".join(added))
    check(not {"clone", "clone3", "fork", "vfork", "execve", "memfd_create", "pipe2"} & set(added),
          f"a program without CUDA pays for {added}")
    check(len(added) <= 20, f"{len(added)} system calls added: {added}")


def test_disabled(lab):
    for variables in ({"VRAMSCOPE_DISABLE": "1"}, {"VRAMSCOPE_ONLY": "other*,x?"}):
        lab.same_as_untraced("notice", traces=0, **variables)
    lab.same_as_untraced("return", VRAMSCOPE_ONLY="no,core_*")


def test_a_second_copy_stays_out(lab):
    copy = os.path.join(lab.folder, "libcopy.so")
    shutil.copy(CORE, copy)
    lab.same_as_untraced("notice", LD_PRELOAD=f"{CORE}:{copy}")


def test_wrong_values_warn_once_and_do_not_reach_the_collector(lab):
    done = lab.run("return", VRAMSCOPE_RING="lots", VRAMSCOPE_FLUSH_MS="0", VRAMSCOPE_LOG="warn")
    lines = done.stderr.splitlines()
    equal("warnings", len(lines), 2)
    check(all(line.startswith("vramscope: VRAMSCOPE_") for line in lines), lines)
    check("VRAMSCOPE_RING" in done.stderr and "VRAMSCOPE_FLUSH_MS" in done.stderr, done.stderr)
    (log,) = lab.logs(1)
    names = [entry.split("=")[0] for entry in log.all("env")]
    check("VRAMSCOPE_FLUSH_MS" not in names and "VRAMSCOPE_LOG" in names, names)
    equal("ring", log.one("ring"), f"{16 << 20 >> 6} -")


# ---- what the collector is handed ----------------------------------------------------------------

def test_hand_over(lab):
    done = lab.run("return", LD_LIBRARY_PATH="/nowhere", MALLOC_ARENA_MAX="1", ASAN_OPTIONS="a=b",
                   GLIBC_TUNABLES="", KEPT="yes", VRAMSCOPE_RING="1M")
    equal("status", done.returncode, 7)
    (log,) = lab.logs(1)
    names = dict(line.split(" ", 1) for line in log.all("fd"))
    for number in "012":
        equal(f"descriptor {number}", names[number], "/dev/null")
    check("vramscope-ring" in names["3"] and "pidfd" in names["4"], names)
    equal("descriptors", sorted(names), ["0", "1", "2", "3", "4", "5"])  # 5: its own log
    equal("seals", log.one("seals"), "7")
    equal("ring", log.one("ring"), f"{1 << 20 >> 6} -")
    equal("surroundings", [log.one(w) for w in ("cwd", "umask", "policy", "session")],
          ["/", "77", "0", "1"])
    for line in log.all("signal"):
        number, action, blocked = line.split()
        equal(f"signal {number}", (action, blocked),
              ("ignored" if int(number) in SIGNALS_IGNORED else "default", "open"))
    env = dict(entry.split("=", 1) for entry in log.all("env"))
    equal("library path", env.get("VRAMSCOPE_TARGET_LIBRARY_PATH"), "/nowhere")
    equal("kept", env.get("KEPT"), "yes")
    for name in env:
        check(not name.startswith(("LD_", "MALLOC_", "ASAN_", "GLIBC_TUNABLES"))
              and name != "VRAMSCOPE_OUTPUT", f"{name} was handed over")


def test_output_is_relative_to_the_first_folder(lab):
    lab.same_as_untraced("changed_folder", VRAMSCOPE_OUTPUT="out/")


def test_default_output_is_the_first_folder(lab):
    lab.run("changed_folder", VRAMSCOPE_OUTPUT=None, cwd=lab.out)
    lab.logs(1)


def test_the_collectors_message_is_printed_once(lab):
    done = lab.run("return", VRAMSCOPE_OUTPUT="/no/such/folder/")
    equal("status", done.returncode, 7)
    equal("lines", len(done.stderr.splitlines()), 1)
    check(done.stderr.startswith("vramscope: cannot write /no/such/folder/"), done.stderr)


def test_no_collector(lab):
    done = lab.run("return", VRAMSCOPE_COLLECTOR="/no/such/collector")
    equal("status", done.returncode, 7)
    equal("lines", len(done.stderr.splitlines()), 1)
    check("/no/such/collector" in done.stderr, done.stderr)
    equal("quiet", lab.run("return", VRAMSCOPE_COLLECTOR="/no/such/collector",
                           VRAMSCOPE_LOG="error").stderr, "")


def test_ring_in_a_file(lab):
    lab.run("return", VRAMSCOPE_RING_AT="file")
    (log,) = lab.logs(1)
    cells, path = log.one("ring").split(" ", 1)
    check(path.startswith(lab.out + ".vramscope.") and path.endswith(".vscope.ring"), path)
    equal("cells", cells, str(16 << 20 >> 6))
    equal("end", log.end(), (EXIT, 7))
    deadline = time.monotonic() + 5
    while os.path.exists(path) and time.monotonic() < deadline:
        time.sleep(0.01)
    check(not os.path.exists(path), "the ring's file is left over")


def test_limits_shrink_or_stop_us_but_not_the_program(lab):
    (log,) = lab.same_as_untraced("small_files")
    equal("cells", log.one("ring"), "8192 -")
    done = lab.run("few_descriptors")
    equal("status", done.returncode, 7)
    equal("one warning", len(done.stderr.splitlines()), 1)


# ---- ends -------------------------------------------------------------------------------------------

def ends_with(mode, end, told):
    def test(lab):
        (log,) = lab.same_as_untraced(mode)
        equal("end in the ring", log.end(), end)
        equal("end events", [(int(e[5]), int(e[4])) for e in log.events("end")],
              [end] if told else [])
        equal("events", len(log.events("alloc")), 10)
        equal("losses", log.lost(), {})
    return test


ENDS = {
    "return": ((EXIT, 7), True), "exit": ((EXIT, 7), True),
    "underscore_exit": ((EXIT, 7), True), "quick_exit": ((EXIT, 7), True),
    "abort": ((KILLED, 6), True), "segv": ((KILLED, 11), True), "trap": ((KILLED, 4), True),
    "send_segv": ((KILLED, 11), True), "kill": ((0, 0), False),
}


def test_threads_alive_at_exit(lab):
    (log,) = lab.same_as_untraced("threads")
    equal("events", len(log.events("alloc")), 20)
    equal("threads", len(set(e[1] for e in log.events("alloc"))), 4)


def test_exec_is_an_end_and_a_beginning(lab):
    first, second = sorted(lab.same_as_untraced("exec", traces=2), key=lambda log: -log.end()[0])
    equal("ends", (first.end(), second.end()), ((EXEC, 0), (EXIT, 7)))


def test_an_exec_that_fails_is_taken_back(lab):
    (log,) = lab.same_as_untraced("exec_failed")
    exec_end, exit_end = log.events("end")
    equal("end kinds", (exec_end[5], exit_end[5]), (str(EXEC), str(EXIT)))
    equal("taken back", log.events("undo")[0][5], exec_end[0])
    equal("end", log.end(), (EXIT, 7))


def test_an_abort_that_is_survived_is_no_end(lab):
    (log,) = lab.same_as_untraced("abort_survived")
    equal("end", log.end(), (EXIT, 7))
    equal("events", len(log.events("alloc")), 20)


# ---- forks -------------------------------------------------------------------------------------------

def forks(mode):
    def test(lab):
        logs = lab.same_as_untraced(mode, traces=2)
        child, parent = sorted(logs, key=lambda log: log.one("forked_from") == "0")
        equal("parent", (parent.end(), len(parent.events("alloc")), parent.lost()),
              ((EXIT, 7), 12, {}))
        equal("child", (child.end(), len(child.events("alloc"))), ((EXIT, 5), 3))
        equal("between fork and ring", child.lost(), {5: 1})
        check(child.all("define"), "the child's trace has no definitions of its own")
        equal("names", sorted(d for d in child.all("define") if d.startswith("2 ")),
              sorted(d for d in parent.all("define") if d.startswith("2 ")))
    return test


def quiet_child(mode):
    def test(lab):
        (log,) = lab.same_as_untraced(mode)
        equal("end", log.end(), (EXIT, 7))
        equal("end events", len(log.events("end")), 1)
    return test


def test_a_thread_dies_between_reservation_and_commit(lab):
    (log,) = lab.same_as_untraced("die_inside")
    equal("torn", log.one("torn"), "1")
    equal("events", len(log.events("alloc")), 21)
    equal("end", log.end(), (EXIT, 7))


def all_tests():
    for name, value in list(globals().items()):
        if name.startswith("test_"):
            yield name[5:], value
    for mode, (end, told) in ENDS.items():
        yield f"end_{mode}", ends_with(mode, end, told)
    for mode in ("fork", "raw_fork"):
        yield mode, forks(mode)
    for mode in ("fork_quiet", "vfork_exit", "vfork_exec"):
        yield mode, quiet_child(mode)


def main():
    failed = 0
    for name, test in all_tests():
        lab = Lab()
        try:
            test(lab)
            print(f"ok      {name}", flush=True)
        except Skip as why:
            print(f"skipped {name}: {why}", flush=True)
        except Exception:  # one test's fault is not the next one's
            failed += 1
            print(f"FAILED  {name}", flush=True)
            traceback.print_exc()
        finally:
            lab.close()
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
