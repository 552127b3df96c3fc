# SPDX-License-Identifier: Apache-2.0
"""Many events at once: a large ring loses nothing, a tiny one accounts for every
event, a stopped collector does not stop the program."""

import os
import signal
import statistics
import time

import storm_log
from lab import SLOW, check, collectors_of, equal, events, program, report, say, verify

THREADS = 8
EVENTS = 1000000 if SLOW else 50000
PAIRS = 3


def storm(events, *options):
    return [program("storm"), str(THREADS), str(events), *options]


def wall_ns(ended):
    equal("storm's status", ended.status, 0)
    return int(ended.words("wall_ns")[0][1])


def calls(ended):
    return int(ended.words("wall_ns")[0][3])


def test_load_large_ring(lab):
    """64 MiB: nothing lost; wall time against untraced is printed, and bounded at
    full length (3 times), where start-up does not count."""
    env = {"VRAMSCOPE_RING": "64M", "VRAMSCOPE_STACKS": "none"}
    plain, traced = [], []
    for _ in range(PAIRS):
        plain.append(wall_ns(lab.plain(storm(EVENTS), timeout=600)))
        lab.empty_traces()
        done = lab.traced(storm(EVENTS), env, timeout=600)
        traced.append(wall_ns(done))
        summary = report(lab.one_trace())["trace"]
        equal("lost", summary["lost"], 0)
        check(summary["events"] >= calls(done), f"{summary['events']} events of {calls(done)} calls")
    ratio = statistics.median(traced) / statistics.median(plain)
    per_event = (statistics.median(traced) - statistics.median(plain)) / (THREADS * EVENTS)
    say(f"{THREADS} threads x {EVENTS}: {ratio:.2f} times the untraced wall time, "
        f"{per_event:.0f} ns more per event (all threads over wall time)")
    verify(lab.one_trace())
    if SLOW:
        check(ratio <= 3, f"{ratio:.2f} times the untraced wall time")


def memory_calls(trace):
    """How many memory calls are recorded, and how many the LOSS events tell of."""
    recorded = lost = 0
    for event in events(trace):
        recorded += event["kind"] in storm_log.MEMORY_KINDS
        if event["kind"] == "loss" and event["label"] in storm_log.MEMORY_KINDS:
            lost += event["extra0"]
    return recorded, lost


def check_accounts(lab, done):
    """lost + recorded = produced, and what is live at the end is exactly nothing."""
    trace = lab.one_trace()
    summary = report(trace)
    made = calls(done)
    recorded, lost = memory_calls(trace)
    equal("recorded + lost memory calls", recorded + lost, made)
    equal("end of direct bytes", summary["devices"][0]["end"]["direct_bytes"], 0)
    say(f"{made} calls: {recorded} recorded, {lost} lost")
    verify(trace)
    return lost


def test_load_tiny_ring(lab):
    done = lab.traced(storm(EVENTS), {"VRAMSCOPE_RING": "64K", "VRAMSCOPE_STACKS": "none",
                                      "VRAMSCOPE_WHEN_FULL": "drop"}, timeout=600)
    wall_ns(done)
    lost = check_accounts(lab, done)
    check(lost > 0, "a 64 KiB ring lost nothing: the test shows nothing")


def test_load_tiny_ring_wait(lab):
    """The same with the bounded wait: whatever was lost is accounted for."""
    done = lab.traced(storm(EVENTS), {"VRAMSCOPE_RING": "64K", "VRAMSCOPE_STACKS": "none"},
                      timeout=600)
    wall_ns(done)
    check_accounts(lab, done)


def rate(threads):
    return sum(thread.produced for thread in threads)


def test_load_stopped_collector(lab):
    """SIGSTOP for a while, thrice: the program goes on at (nearly) its own speed. The middle one
    counts, for the machine's own speed can change in any of them."""
    stop_s = 10 if SLOW else 1
    log = lab.path("log")
    command = storm(0, "--log", log, "1", "--pause", "100")
    process = lab.start(*lab.preload_command(command, {"VRAMSCOPE_RING": "1M",
                                                       "VRAMSCOPE_STACKS": "none"}))
    until = time.monotonic() + 20
    while time.monotonic() < until and not (os.path.exists(log) and storm_log.started(log) and
                                            collectors_of(lab.traces_folder)):
        time.sleep(0.01)
    collectors = collectors_of(lab.traces_folder)
    equal("collectors", len(collectors), 1)

    def events_in(seconds):
        began, first = time.monotonic(), rate(storm_log.read(log))
        time.sleep(seconds)
        return (rate(storm_log.read(log)) - first) / (time.monotonic() - began)

    def slowdown():
        """In percent of the speed before and after."""
        before = events_in(stop_s)
        os.kill(collectors[0], signal.SIGSTOP)
        stopped = events_in(stop_s)
        os.kill(collectors[0], signal.SIGCONT)
        usual = (before + events_in(stop_s / 2)) / 2
        say(f"collector stopped {stop_s} s: {usual:.0f} → {stopped:.0f} events/s")
        return 100 * (1 - stopped / usual)

    time.sleep(0.5)
    slower = statistics.median(slowdown() for _ in range(3))
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    trace = lab.wait_for_traces(1)[0]
    lost = report(trace)["trace"]["lost"]
    say(f"{slower:.1f} % slower, {lost} lost")
    made = rate(storm_log.read(log))
    summary = report(trace)["trace"]
    memory, missed = memory_calls(trace)
    check(made <= memory + missed + summary["torn"] <= made + THREADS,
          f"{made} calls, {memory} recorded, {missed} lost, {summary['torn']} torn")
    check(slower < (2 if SLOW else 20), f"{slower:.1f} % slower while the collector stood still")
