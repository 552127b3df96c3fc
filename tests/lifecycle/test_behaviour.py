# SPDX-License-Identifier: Apache-2.0
"""The shim in LD_PRELOAD of programs that have nothing to do with CUDA, and of
supervisors that count their children: same output, same status, nothing left."""

import os
import shutil
import sys
import time

from lab import (SHIM, SLOW, check, equal, need, need_namespaces, processes_about, program, say)

# Plain programs; what they print must not depend on the run.
COMMANDS = {
    "true": ["true"],
    "false": ["false"],
    "python": [sys.executable, "-I", "-c", "pass"],
    "python output": [sys.executable, "-I", "-c", "import sys; print(len(sys.argv)); sys.exit(5)"],
    "pipeline": ["sh", "-c", "seq 1 20000 | grep 7 | sort -r | head -n 3 | wc -c"],
    "exec chain": ["sh", "-c", "exec sh -c 'exec sh -c \"exec echo at the end\"'"],
    "signal": ["sh", "-c", "kill -TERM $$"],
    "subshells": ["sh", "-c", "(exit 3); echo $?; (kill -9 $$ & wait); echo never"],
    "background": ["sh", "-c", "sleep 0.05 & sleep 0.01 & wait; echo $?"],
    "git": ["git", "--version"],
    "nvcc": ["nvcc", "--version"],
    "missing": ["sh", "-c", "exec /nonexistent/program"],
}
CLOSED = "exec 0<&- 1>&-; exec true"


def available(command):
    if shutil.which(command[0]):
        return True
    cuda = os.path.join("/usr/local/cuda/bin", command[0])
    if os.path.exists(cuda):
        command[0] = cuda
        return True
    say(f"{command[0]} is not installed: left out")
    return False


def preload_only(lab):
    return {"LD_PRELOAD": SHIM, "VRAMSCOPE_OUTPUT": lab.traces_folder + "/"}


def test_behaviour_commands(lab):
    for name, command in COMMANDS.items():
        if not available(command):
            continue
        plain = lab.run(command)
        loaded = lab.run(command, preload_only(lab))
        equal(name, (loaded.status, loaded.out, loaded.err), (plain.status, plain.out, plain.err))
    closed = lab.run(["sh", "-c", CLOSED], preload_only(lab))
    equal("closed descriptors", (closed.status, closed.out, closed.err), (0, "", ""))
    equal("files", os.listdir(lab.traces_folder), [])
    until = time.monotonic() + 2
    while (left := processes_about(lab.folder)) and time.monotonic() < until:
        time.sleep(0.05)
    equal("processes left after 2 s", left, {})


def test_behaviour_fork_storm(lab):
    """Thousands of short children of a shell, none of which touches CUDA."""
    count = 3000 if SLOW else 300
    script = f"i=0; while [ $i -lt {count} ]; do (:) & /bin/true; i=$((i+1)); done; wait; echo $i"
    plain = lab.run(["sh", "-c", script])
    loaded = lab.run(["sh", "-c", script], preload_only(lab))
    equal("output", (loaded.status, loaded.out, loaded.err), (plain.status, plain.out, plain.err))
    equal("files", os.listdir(lab.traces_folder), [])
    say(f"{2 * count} children: {plain.seconds:.2f} s without, {loaded.seconds:.2f} s with the shim")


def check_unchanged(lab, mode, without_lines=()):
    plain = lab.plain([program("unchanged"), mode])
    loaded = lab.preloaded([program("unchanged"), mode])
    equal("status", (plain.status, loaded.status), (0, 0))
    pairs = list(zip(plain.out.splitlines(), loaded.out.splitlines()))
    differ = [pair for pair in pairs if pair[0] != pair[1]]
    equal("lines", len(loaded.out.splitlines()), len(plain.out.splitlines()))
    equal(f"what the program sees of itself ({mode})", differ, [])
    equal("stderr", loaded.err, plain.err)


def test_behaviour_idle(lab):
    check_unchanged(lab, "idle")
    equal("files", os.listdir(lab.traces_folder), [])


def test_behaviour_cuda(lab):
    check_unchanged(lab, "cuda")
    equal("traces", len(lab.wait_for_traces(1)), 1)


def reaper_lines(done):
    return [line for line in done.out.splitlines() if not line.startswith(("alloc", "free"))]


def reaper(lab, inside, prefix, command):
    """The reaper's lines, plain and with the shim."""
    head = [program("reaper")] + (["cuda"] if inside else []) + ["--", *command]
    plain = lab.run(lab.on_simgpu(prefix + head), timeout=60)
    simulated, env = lab.preload_command(prefix + head)
    loaded = lab.run(simulated, env, timeout=60)
    equal(f"{head}: status", (plain.status, loaded.status), (0, 0))
    return reaper_lines(plain), reaper_lines(loaded)


def reaper_cases(lab, prefix):
    for inside in (False, True):
        plain, loaded = reaper(lab, inside, prefix, ["sh", "-c", "true; exit 3"])
        equal(f"reaper{' with CUDA' * inside} over a plain child", loaded, plain)
        lab.wait_for_traces(int(inside))
        lab.empty_traces()
    # A child that uses CUDA: its collector outlives it as an orphan, and orphans belong to
    # whoever reaps them here. The loop must end, with the child's own status, and see no
    # more than that one process more.
    plain, loaded = reaper(lab, False, prefix, [program("ends"), "exit"])
    equal("reaper over a CUDA child", loaded[:2], plain[:2])
    reaped = [int(lines[2].split()[1].rstrip(",")) for lines in (plain, loaded)]
    check(reaped[0] <= reaped[1] <= reaped[0] + 1, f"reaped {reaped[1]}, without us {reaped[0]}")
    say(f"over a CUDA child: {loaded[2]}, without the shim: {plain[2]}")
    lab.wait_for_traces(1)
    lab.empty_traces()


def test_behaviour_subreaper(lab):
    reaper_cases(lab, [])


def test_behaviour_pid1(lab):
    reaper_cases(lab, need_namespaces())


def count_syscalls(lab, command, env, name):
    log = lab.path(name)
    done = lab.run(["strace", "-f", "-c", "-o", log, *command], env)
    equal("status under strace", done.status, 0)
    with open(log, encoding="utf-8") as file:
        total = [line for line in file if line.rstrip().endswith("total")]
    return int(total[0].split()[3])


def test_behaviour_syscalls(lab):
    """System calls the shim adds to a program that never touches CUDA."""
    need("strace")
    command = ["/bin/true"]
    plain = count_syscalls(lab, command, None, "plain")
    # Of an empty library: what loading any shared object costs.
    empty = count_syscalls(lab, command, {"LD_PRELOAD": program("libempty.so")}, "empty")
    loaded = count_syscalls(lab, command, preload_only(lab), "loaded")
    say(f"system calls of true: {plain}; with an empty preload {empty}; with the shim {loaded}")
    check(loaded - empty <= 25, f"the shim adds {loaded - empty} system calls beyond being loaded")


def test_behaviour_startup(lab):
    """Start-up cost of a program without CUDA, paired: printed; bounded loosely."""
    rounds = 200 if SLOW else 40
    script = f"for i in $(seq {rounds}); do /bin/true; done"
    ratios = []
    for _ in range(3):
        empty = lab.run(["sh", "-c", script], {"LD_PRELOAD": program("libempty.so")})
        loaded = lab.run(["sh", "-c", script], preload_only(lab))
        ratios.append((loaded.seconds - empty.seconds) * 1e6 / rounds)
    say(f"start-up beyond an empty preload: {sorted(ratios)[1]:.0f} µs per program")
    check(sorted(ratios)[1] < 5000, f"{sorted(ratios)[1]:.0f} µs per program start")
