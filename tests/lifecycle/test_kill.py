# SPDX-License-Identifier: Apache-2.0
"""SIGKILL at random moments: of the target, and of target and collector together."""

import os
import random
import signal
import time

import storm_log
from lab import (SLOW, Failed, check, dump, equal, need_namespaces, processes, program, report, say,
                 tool, verify)

KILLS = 200 if SLOW else 20
ENTRIES = 200000
FLUSH_MS = 100
# A flush is begun FLUSH_MS after an event; on a loaded machine writing takes a while more.
SLACK_MS = 300
PAUSE_US = "20"


def wait_for_start(path, process, seconds=20):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if process.poll() is not None:
            raise Failed(f"the storm ended by itself: {process.communicate()}")
        if os.path.exists(path) and storm_log.started(path):
            return
        time.sleep(0.005)
    raise Failed("the storm did not start")


def storm_command(log, events="0"):
    return [program("storm"), "4", events, "--log", log, str(ENTRIES), "--pause", PAUSE_US]


def check_counts(summary, threads, where):
    made = sum(thread.produced for thread in threads)
    trace = summary["trace"]
    accounted = trace["events"] + trace["lost"] + trace["torn"]
    check(accounted >= made, f"{where}: {made} calls made, {accounted} accounted for")
    equal(f"{where}: lost", trace["lost"], 0)


def pid_of(process, name):
    """The process of that name beneath the one we started."""
    table = processes()
    for pid, (parent, comm) in table.items():
        above = parent
        while comm == name and above > 1 and above != process.pid:
            above = table.get(above, (0, ""))[0]
        if comm == name and (above == process.pid or pid == process.pid):
            return pid
    raise Failed(f"no {name} is running")


def one_target_kill(lab, number, under_run):
    log = lab.path(f"log{number}")
    env = {"VRAMSCOPE_FLUSH_MS": str(FLUSH_MS)}
    if under_run:
        command = lab.on_simgpu(lab.tool_run(storm_command(log)))
    else:
        command, env = lab.preload_command(storm_command(log), env)
    process = lab.start(command, env)
    wait_for_start(log, process)
    time.sleep(random.uniform(0, 0.4))
    os.kill(pid_of(process, "storm"), signal.SIGKILL)
    out, err = process.communicate(timeout=60)
    traces = lab.wait_for_traces(1)
    equal("traces", len(traces), 1)
    threads = storm_log.read(log)
    where = f"kill {number}"
    verify(traces[0])
    summary = report(traces[0])
    held = storm_log.compare(threads, dump(traces[0]))
    check_counts(summary, threads, where)
    ended = summary["trace"]["ended"]
    if under_run:
        equal(f"{where}: ended", ended, "killed")
        equal(f"{where}: signal", summary["trace"]["signal"], 9)
        check(process.returncode in (-9, 137), f"{where}: run's status {process.returncode} {err}")
    else:
        check(ended in ("killed", "unknown"), f"{where}: ended {ended}")
    equal(f"{where}: complete", summary["trace"]["complete"], False)
    lab.empty_traces()
    os.unlink(log)
    return held


def kill_targets(lab, under_run):
    held = 0
    for number in range(KILLS):
        held += one_target_kill(lab, number, under_run)
    say(f"{KILLS} kills, {held} logged calls, every one in its trace")


def test_kill_target_under_run(lab):
    kill_targets(lab, True)


def test_kill_target_preloaded(lab):
    kill_targets(lab, False)


def one_double_kill(lab, unshare, number, ring_at):
    log = lab.path(f"log{number}")
    command, env = lab.preload_command(
        storm_command(log), {"VRAMSCOPE_FLUSH_MS": str(FLUSH_MS), "VRAMSCOPE_RING_AT": ring_at})
    process = lab.start(unshare + command, env)
    wait_for_start(log, process)
    time.sleep(random.uniform(0.2, 1.2))
    killed_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    process.kill()  # unshare dies, --kill-child ends the namespace's init, and that everybody
    process.communicate(timeout=60)
    traces = lab.wait_for_traces(1)
    threads = storm_log.read(log)
    older = None if ring_at == "file" else killed_ns - (FLUSH_MS + SLACK_MS) * 1000000
    held = storm_log.compare(threads, dump(traces[0], cut=True), older)
    verify_cut(traces[0])
    ended = report(traces[0], cut=True)["trace"]
    check(ended["ended"] in ("killed", "unknown"), f"double kill {number}: ended {ended['ended']}")
    equal(f"double kill {number}: complete", ended["complete"], False)
    lab.empty_traces()
    os.unlink(log)
    return held


def verify_cut(trace):
    """Nothing off, but that the file may end inside the chunk being written."""
    done = tool("verify", trace)
    off = [line for line in done.out.splitlines() if line.startswith("OFF")]
    check(done.status == 0 or all("cut" in line or "chunk" in line for line in off),
          f"verify {trace}: {done.out}{done.err}")


def double_kills(lab, ring_at, kills):
    unshare = need_namespaces()
    held = 0
    for number in range(kills):
        held += one_double_kill(lab, unshare, number, ring_at)
    say(f"{kills} kills of both ({ring_at}), {held} logged calls had to be there and were")


def test_kill_both(lab):
    double_kills(lab, "memory", KILLS)


def test_kill_both_ring_file(lab):
    double_kills(lab, "file", KILLS // 4)
