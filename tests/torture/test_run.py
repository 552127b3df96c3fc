# SPDX-License-Identifier: Apache-2.0
"""`vramscope run` around commands of every kind: exit status, signals, job
control, what it sets up and what it says. Collectors are started by a stand-in
producer, so that nothing here needs a device."""

import glob
import os
import pty
import resource
import signal
import subprocess
import sys
import time

from collector_lab import COLLECTOR, PRODUCER, TOOL, check, equal, run_tests

NO_CUDA = "no trace: nothing touched CUDA"


def tool_run(lab, command, options=(), env=None, **more):
    environment = {k: v for k, v in lab.environment(env).items()
                   if k != "VRAMSCOPE_RUN_DIR" or (env and k in env)}
    return subprocess.Popen([TOOL, "run", *options, "--", *command], env=environment, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=lab.folder, **more)


def run(lab, *command, options=(), env=None, **more):
    process = tool_run(lab, command, options, env, **more)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def last_line(err):
    return err.strip().splitlines()[-1]


def produce(lab, *words):
    return [PRODUCER, COLLECTOR, lab.out, *words]


def test_exit_status_is_the_commands(lab):
    for status in (0, 1, 42, 127, 255):
        got, _, err = run(lab, "sh", "-c", f"exit {status}")
        equal("status", got, status)
        check(NO_CUDA in last_line(err), err)


def test_signals_end_it_likewise_and_without_a_core(lab):
    def allow_cores():
        resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2)
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGSEGV, signal.SIGPIPE):
        got, _, _ = run(lab, "sh", "-c", f"ulimit -c 0; kill -{int(number)} $$",
                        preexec_fn=allow_cores)
        equal("status", got, -number)
    equal("cores", glob.glob(lab.folder + "/core*"), [])


def test_commands_that_cannot_be_started(lab):
    plain = os.path.join(lab.folder, "plain")
    with open(plain, "w", encoding="utf-8") as file:
        file.write("no program")
    for command, status in (("/nonexistent/x", 127), ("no-such-command-here", 127), (plain, 126),
                            (lab.folder, 126)):
        got, _, err = run(lab, command)
        equal(command, got, status)
        equal("lines", len(err.strip().splitlines()), 1)
        check(command in err, err)


def test_usage(lab):
    for words in (["run"], ["run", "--"], ["run", "--bogus", "true"], ["run", "-o"],
                  ["run", "--ring", "much", "--", "true"], ["run", "--stacks", "all", "--", "true"],
                  ["run", "--depth", "1.5", "--", "true"]):
        done = subprocess.run([TOOL, *words], capture_output=True, text=True, timeout=10)
        equal(f"{words}", done.returncode, 2)
        equal("lines", len(done.stderr.strip().splitlines()), 1)
    done = subprocess.run([TOOL, "run", "--help"], capture_output=True, text=True, timeout=10)
    equal("help", (done.returncode, done.stdout[:6], done.stderr), (0, "usage:", ""))


def test_what_it_sets_up(lab):
    show = 'echo "$LD_PRELOAD|$VRAMSCOPE_OUTPUT|$VRAMSCOPE_RING|$VRAMSCOPE_STACKS|$VRAMSCOPE_PRIVATE"'
    _, out, _ = run(lab, "sh", "-c", show,
                    options=["-o", "%p.vscope", "--ring", "64M", "--stacks", "native", "--private"])
    preload, output, ring, stacks, private = out.strip().split("|")
    check(preload.endswith("/lib/libvramscope.so") and os.path.exists(preload), preload)
    equal("output", output, os.path.realpath(lab.folder) + "/%p.vscope")
    equal("options", (ring, stacks, private), ("64M", "native", "1"))


def test_output_is_a_folder_by_default_and_when_it_is_one(lab):
    _, out, _ = run(lab, "sh", "-c", "echo $VRAMSCOPE_OUTPUT")
    equal("default", out.strip(), os.path.realpath(lab.folder) + "/")
    _, out, _ = run(lab, "sh", "-c", "echo $VRAMSCOPE_OUTPUT", options=["-o", "out"])
    equal("existing folder", out.strip(), os.path.realpath(lab.folder) + "/out/")


def test_an_existing_preload_stays_after_ours(lab):
    libc = next(iter(sorted(glob.glob("/lib/*/libm.so.6") + glob.glob("/usr/lib/*/libm.so.6"))))
    _, out, _ = run(lab, "sh", "-c", "echo $LD_PRELOAD", env={"LD_PRELOAD": libc})
    ours, theirs = out.strip().split(":")
    check(ours.endswith("/libvramscope.so"), ours)
    equal("theirs", theirs, libc)


def test_nested_does_not_stack_two(lab):
    _, out, err = run(lab, TOOL, "run", "--", "sh", "-c", "echo $LD_PRELOAD")
    equal("shims", out.count("libvramscope.so"), 1)
    equal("closing lines", err.count(NO_CUDA), 2)


def test_nested_runs_count_their_own(lab):
    inner = [TOOL, "run", "--", *produce(lab)]
    _, _, err = run(lab, "sh", "-c", " ".join([*produce(lab), "&&", *inner]))
    closing = [line for line in err.splitlines() if line.startswith("vramscope: ")]
    equal("inner, outer", [line.split()[1] for line in closing], ["1", "2"])


def slow_collector(lab):
    """One that makes its report only a second after its program's start."""
    path = os.path.join(lab.folder, "slow-collector")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\nsleep 1\nexec {COLLECTOR} "$@"\n')
    os.chmod(path, 0o755)
    return path


def test_nested_runs_do_not_count_who_came_before_them(lab):
    """The report about an earlier program is made while the inner run is under way."""
    inner = [TOOL, "run", "--", *produce(lab, "idle=2000")]
    early = [PRODUCER, slow_collector(lab), lab.out]
    _, _, err = run(lab, "sh", "-c", " ".join([*early, "&&", *inner]), env={"TMPDIR": lab.folder})
    closing = [line for line in err.splitlines() if line.startswith("vramscope: ")]
    equal("inner, outer", [line.split()[1] for line in closing], ["1", "2"])
    equal("folders left", glob.glob(lab.folder + "/vramscope-run.*"), [])


def test_a_nested_run_that_lives_on(lab):
    """It still finds its trace, and takes the outer one's folder along."""
    inner = " ".join([TOOL, "run", "--", *produce(lab, "idle=1500")])
    done = os.path.join(lab.folder, "inner.err")
    _, _, err = run(lab, "sh", "-c", f"{inner} >/dev/null 2>{done} & sleep 0.3",
                    env={"TMPDIR": lab.folder})
    check("1 still being written" in last_line(err), err)
    until = time.monotonic() + 20
    while time.monotonic() < until and glob.glob(lab.folder + "/vramscope-run.*"):
        time.sleep(0.05)
    equal("folders left", glob.glob(lab.folder + "/vramscope-run.*"), [])
    with open(done, encoding="utf-8") as file:
        check("vramscope: 1 trace, " in file.read(), "the inner run has lost its trace")


def test_trace_is_whole_when_it_returns(lab):
    for words, status in ((["value=3"], 3), (["end=kill"], -9), (["end=silent", "value=5"], 5)):
        got, _, err = run(lab, *produce(lab, "events=100000", *words))
        equal("status", got, status)
        line = last_line(err)
        check(line.startswith("vramscope: 1 trace, "), err)
        check("still being written" not in line, err)
        trace = line.rpartition("vramscope report ")[2]
        check(os.path.getsize(trace) > 20000, f"{trace} is too small")


def test_children_of_a_shell_are_waited_for(lab):
    """The traced process is not the command itself, and has been reaped by somebody else."""
    _, _, err = run(lab, "sh", "-c", " ".join(produce(lab, "events=100000", "end=silent")) + "; :")
    check("1 trace, " in last_line(err) and "still" not in last_line(err), err)


def test_out_of_memory_is_named(lab):
    both = " ".join(produce(lab, "oom=1", "value=1")) + "; " + " ".join(produce(lab))
    _, _, err = run(lab, "sh", "-c", both)
    check("2 traces, " in last_line(err), err)
    check("1 ended in out of memory" in last_line(err), err)
    check(last_line(err).rpartition("vramscope report ")[2] in lab.traces(), err)


def test_many_traces_name_their_folder(lab):
    _, _, err = run(lab, "sh", "-c", "; ".join([" ".join(produce(lab))] * 3))
    check("3 traces, " in last_line(err), err)
    equal("what to type", last_line(err).rpartition("vramscope report ")[2], lab.out)


def test_a_process_that_lives_on(lab):
    """Not waited for, and nothing of ours stays behind once it ends."""
    began = time.monotonic()
    _, _, err = run(lab, "sh", "-c",
                    " ".join(produce(lab, "idle=6000")) + " >/dev/null 2>&1 & sleep 0.5",
                    env={"TMPDIR": lab.folder})
    check(time.monotonic() - began < 5, "it waited for a daemon")
    check("1 still being written" in last_line(err), err)
    until = time.monotonic() + 30
    while time.monotonic() < until and glob.glob(lab.folder + "/vramscope-run.*"):
        time.sleep(0.05)
    equal("folders left", glob.glob(lab.folder + "/vramscope-run.*"), [])


def test_cannot_write_is_said(lab):
    status, _, err = run(lab, PRODUCER, COLLECTOR, lab.folder + "/nowhere/", "value=2")
    equal("status", status, 2)
    check("no trace: cannot write " in last_line(err), err)


def test_quiet_when_only_errors_are_wanted(lab):
    _, _, err = run(lab, "true", options=["--log", "error"])
    equal("standard error", err, "")


def test_programs_that_cannot_be_preloaded(lab):
    source = os.path.join(lab.folder, "static.c")
    with open(source, "w", encoding="utf-8") as file:
        file.write("int main(void) { return 5; }\n")
    static = os.path.join(lab.folder, "static")
    subprocess.run(["cc", "-static", "-o", static, source], check=True)
    status, _, err = run(lab, static)
    equal("status", status, 5)
    check("linked statically" in err, err)
    if os.geteuid() == 0:
        os.chown(static, 1, 1)
        os.chmod(static, 0o4755)
        check("set-user-ID" in run(lab, static)[2], "not said")


def test_a_child_that_lost_the_preload(lab):
    """A stand-in named libcuda.so.1, mapped by a process without the shim."""
    library = os.path.join(lab.folder, "libcuda.so.1")
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-o", library, "/dev/null"], check=True)
    code = f"import ctypes, time; ctypes.CDLL({library!r}); time.sleep(2.5)"
    _, _, err = run(lab, "env", "-u", "LD_PRELOAD", sys.executable, "-c", code)
    check("LD_PRELOAD had been dropped" in last_line(err), err)
    check("vramscope doctor" in last_line(err), err)


TRAP = "trap 'echo got $sig; exit 9' $sig; echo ready; while :; do sleep 0.05; done"


def test_signals_sent_to_it_alone_reach_the_command(lab):
    for name in ("TERM", "INT", "HUP", "USR1", "USR2", "QUIT"):
        process = tool_run(lab, ["sh", "-c", TRAP.replace("$sig", name)], start_new_session=True)
        equal("ready", process.stdout.readline(), "ready\n")
        process.send_signal(getattr(signal, "SIG" + name))
        out, _ = process.communicate(timeout=10)
        equal(name, (out, process.returncode), (f"got {name}\n", 9))


def counting(number):
    """A command that counts for a second how often a signal reaches it. It never sleeps: two
    that come shortly after each other must not become one."""
    return [sys.executable, "-c",
            "import signal, time\n"
            f"signal.pthread_sigmask(signal.SIG_BLOCK, [{int(number)}])\n"
            "print('ready', flush=True)\n"
            "until, n = time.monotonic() + 1, 0\n"
            "while time.monotonic() < until:\n"
            f"    n += signal.sigtimedwait([{int(number)}], 0) is not None\n"
            "print('times', n)\n"]


def test_signals_sent_to_the_whole_group_arrive_once(lab):
    process = tool_run(lab, counting(signal.SIGUSR1), start_new_session=True)
    equal("ready", process.stdout.readline(), "ready\n")
    os.killpg(process.pid, signal.SIGUSR1)
    out, _ = process.communicate(timeout=10)
    equal("group", out.strip(), "times 1")
    process = tool_run(lab, counting(signal.SIGUSR1), start_new_session=True)
    equal("ready", process.stdout.readline(), "ready\n")
    process.send_signal(signal.SIGUSR1)
    out, _ = process.communicate(timeout=10)
    equal("alone", out.strip(), "times 1")


def test_the_caller_s_signal_state_is_handed_on(lab):
    show = "import signal; print(signal.getsignal(signal.SIGTSTP), signal.getsignal(signal.SIGCHLD)," \
           " signal.pthread_sigmask(signal.SIG_BLOCK, []))"

    def odd_state():
        signal.signal(signal.SIGTSTP, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
    plain = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True,
                           preexec_fn=odd_state, timeout=10).stdout
    status, out, _ = run(lab, sys.executable, "-c", show, preexec_fn=odd_state)
    equal("status", status, 0)
    equal("state", out, plain)


def read_until(terminal, word):
    seen = ""
    while word not in seen:
        seen += os.read(terminal, 4096).decode()
    return seen


def read_to_end(terminal):
    """Until nobody has the other side open any more, which reads as an error."""
    seen = ""
    try:
        while True:
            seen += os.read(terminal, 4096).decode()
    except OSError:
        return seen


def on_terminal(lab, command):
    """Runs `vramscope run -- COMMAND` as the foreground of a terminal of its own."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(lab.folder)
        os.execv(TOOL, [TOOL, "run", "--", *command])
    return pid, terminal


def test_the_terminals_interrupt_arrives_once(lab):
    pid, terminal = on_terminal(lab, counting(signal.SIGINT))
    read_until(terminal, "ready")
    os.write(terminal, b"\x03")
    seen = read_until(terminal, "vramscope: ")
    equal("status", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
    os.close(terminal)
    check("times 1\r\n" in seen, repr(seen))


def test_the_terminals_stop_key_stops_both(lab):
    """What a shell with job control needs: it is stopped when the command is, and goes on with it."""
    inner = "echo ready; sleep 2; echo done; exit 4"
    shell = f"set -m; {TOOL} run -- sh -c '{inner}'; echo first $?; fg >/dev/null; echo then $?"
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(lab.folder)
        os.execvp("bash", ["bash", "-c", shell])
    read_until(terminal, "ready")
    time.sleep(0.5)  # a stop between sh's vfork and exec would stop the child alone, and sh for ever
    os.write(terminal, b"\x1a")
    seen = read_to_end(terminal)
    os.waitpid(pid, 0)
    os.close(terminal)
    check(f"first {128 + signal.SIGSTOP}" in seen or f"first {128 + signal.SIGTSTP}" in seen,
          repr(seen))
    check("done" in seen and "then 4" in seen, repr(seen))


if __name__ == "__main__":
    sys.exit(run_tests(sys.modules[__name__]))
