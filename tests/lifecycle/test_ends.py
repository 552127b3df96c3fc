# SPDX-License-Identifier: Apache-2.0
"""Every kind of end: what the trace says of it, and that nothing is missing."""

import collections
import os
import shutil
import signal
import stat
import subprocess

from lab import SHIM, TOOL, Skip, check, dump, equal, need, program, report, say, verify

# mode: (status a shell sees, [(ended, exit code, signal) of each trace])
EXIT, KILLED, EXEC = "exit", "killed", "exec"
OWN_ENDS = {
    "exit": (7, [(EXIT, 7, None)]),
    "_exit": (7, [(EXIT, 7, None)]),
    "quick_exit": (7, [(EXIT, 7, None)]),
    "exit_group": (7, None),
    "threads": (7, [(EXIT, 7, None)]),
    "main_first": (7, [(EXIT, 7, None)]),
    "abort": (-6, [(KILLED, None, 6)]),
    "segv": (-11, [(KILLED, None, 11)]),
    "term": (-15, [(KILLED, None, 15)]),
    "kill": (-9, [(KILLED, None, 9)]),
    "exec": (7, [(EXEC, None, None), (EXIT, 7, None)]),
    "exec_plain": (7, [(EXEC, None, None)]),
    "exec_failed": (7, [(EXIT, 7, None)]),
    "dlclose": (7, [(EXIT, 7, None)]),
    "killed_by_child": (-9, None),
}
FAMILIES = {  # mode: traces expected
    "fork_before": 2, "raw_fork_before": 2, "clone_before": 2, "fork_after": 2,
    "raw_fork_after": 2, "clone_after": 2, "fork_idle": 1, "raw_fork_idle": 1, "clone_idle": 1,
    "vfork_exec": 2, "vfork_nothing": 1, "spawn_cuda": 2,
    "spawn_plain": 1,
}


def as_shell(status):
    """A launcher may end by the signal itself or with 128 + signal."""
    return {status, 128 - status} if status < 0 else {status}


def printed(done):
    """{pid: [("alloc", address, size) or ("free", address, 0)]} as the program printed it."""
    by_pid = collections.defaultdict(list)
    for line in done.out.splitlines():
        words = line.split()
        if words and words[0] in ("alloc", "free"):
            size = int(words[3]) if words[0] == "alloc" else 0
            by_pid[int(words[1])].append((words[0], int(words[2]), size))
    return by_pid


def recorded(trace):
    found = []
    for event in dump(trace):
        if event["kind"] in ("alloc", "free") and event.get("result") in (0, None, "CUDA_SUCCESS"):
            found.append((event["kind"], event.get("address", 0),
                          event.get("size", 0) if event["kind"] == "alloc" else 0))
    return found


def check_events(done, traces, exactly=True):
    """The calls printed by each process are those of its traces (an exec: two traces)."""
    by_pid = printed(done)
    for _, pid, failed in done.words("failed"):
        equal(f"the child {pid} could not use CUDA", failed, "1")
        by_pid[int(pid)] = []
    of_traces = collections.defaultdict(list)
    for trace in traces:
        of_traces[report(trace)["process"]["pid"]].append(recorded(trace))
    equal("processes with a trace", sorted(of_traces), sorted(by_pid))
    for pid, calls in by_pid.items():
        got = sorted(call for part in of_traces[pid] for call in part)
        if exactly:
            equal(f"calls of {pid}", got, sorted(calls))
        else:
            missing = [call for call in calls if call not in got]
            equal(f"calls of {pid} that are missing", missing, [])


def ends_of(traces):
    found = []
    for trace in traces:
        summary = report(trace)["trace"]
        found.append((summary["ended"], summary["exit_code"], summary["signal"]))
        complete = summary["ended"] in ("exit", "exec")
        check(summary["complete"] == complete,
              f"{trace}: ended {summary['ended']}, complete {summary['complete']}")
    return sorted(found, key=str)


def one_end(lab, mode, how):
    status, wanted = OWN_ENDS[mode]
    run = lab.traced if how == "run" else lab.preloaded
    done = run([program("ends"), mode])
    check(done.status in as_shell(status), f"{mode}: status {done.status}: {done.err}")
    count = len(wanted) if wanted else 1
    traces = lab.wait_for_traces(count)
    equal(f"{mode}: traces", len(traces), count)
    check_events(done, traces, exactly=mode != "killed_by_child")
    for trace in traces:
        verify(trace)
    if wanted and how == "run":
        equal(f"{mode}: ends", ends_of(traces), sorted(wanted, key=str))
    elif wanted:
        unknown = [(kind, code if kind == EXIT else None, None) for kind, code, _ in wanted]
        got = [(kind if kind != "unknown" else KILLED, code, None) for kind, code, _ in
               ends_of(traces)]
        equal(f"{mode}: ends", got, sorted(unknown, key=str))
    lab.empty_traces()


def all_ends(lab, how):
    failures = []
    for mode in OWN_ENDS:
        try:
            one_end(lab, mode, how)
        except Exception as why:  # every mode is tried: one failure must not hide another
            failures.append(f"{mode}: {why}")
            lab.empty_traces()
    check(not failures, "\n".join(failures))
    say(f"{len(OWN_ENDS)} ends ({how})")


def test_ends_under_run(lab):
    all_ends(lab, "run")


def test_ends_preloaded(lab):
    all_ends(lab, "preload")


def one_family(lab, mode, count):
    plain = lab.plain([program("ends"), mode])
    done = lab.traced([program("ends"), mode])
    equal(f"{mode}: status", done.status, plain.status)
    equal(f"{mode}: child", done.words("child"), plain.words("child"))
    traces = lab.wait_for_traces(count)
    equal(f"{mode}: traces", len(traces), count)
    check_events(done, traces)
    for trace in traces:
        verify(trace)
    lab.empty_traces()


def test_ends_children(lab):
    """fork, vfork, posix_spawn, raw SYS_fork and clone, with CUDA in the child or not."""
    failures = []
    for mode, count in FAMILIES.items():
        try:
            one_family(lab, mode, count)
        except Exception as why:
            failures.append(f"{mode}: {why}")
            lab.empty_traces()
    check(not failures, "\n".join(failures))


def test_ends_nested_run(lab):
    """`vramscope run` inside `vramscope run`: one trace per process, not two recorders."""
    inner = lab.tool_run([program("ends"), "exit"])
    done = lab.run(lab.on_simgpu(lab.tool_run(inner)))
    equal("status", done.status, 7)
    traces = lab.wait_for_traces(1)
    equal("traces", len(traces), 1)
    check_events(done, traces)


def test_ends_run_around_simgpu(lab):
    """Either way round: vramscope run -- simgpu -- CMD."""
    done = lab.run(lab.tool_run(lab.on_simgpu([program("ends"), "exit"])))
    equal("status", done.status, 7)
    traces = lab.wait_for_traces(1)
    equal("traces", len(traces), 1)
    check_events(done, traces)


def test_ends_setuid(lab):
    """A setuid program: the loader drops the preload by path; loaded by other means
    the shim must stay off. The program runs as it would."""
    if os.geteuid() != 0:
        raise Skip("needs root to make a setuid program")
    setpriv = need("setpriv")
    copy = lab.path("ends-setuid")
    shutil.copy(program("ends"), copy)
    os.chmod(copy, 0o4755)
    os.chmod(lab.folder, 0o777)
    os.chmod(lab.traces_folder, 0o777)
    probe = subprocess.run([setpriv, "--reuid=65534", copy, "nothing"], capture_output=True)
    if probe.returncode != 2:
        raise Skip("another user cannot run programs from the test's folder")
    command = lab.tool_run([setpriv, "--reuid=65534", "--regid=65534", "--clear-groups", copy,
                            "exit"])
    done = lab.run(lab.on_simgpu(command))
    equal("traces", lab.traces(), [])
    check(done.status in (3, 7), f"status {done.status}: {done.err}")


def test_ends_other_preloads(lab):
    """Another preload before us and after us: both work, nothing is counted twice."""
    other = program("libother-preload.so")
    for order in (f"{other}:{SHIM}", f"{SHIM}:{other}"):
        command, env = lab.preload_command([program("ends"), "exit"], {"LD_PRELOAD": order, "LIFECYCLE_GLOBAL": "1"})
        done = lab.run(command, env)
        equal(f"{order}: status", done.status, 7)
        traces = lab.wait_for_traces(1)
        equal("traces", len(traces), 1)
        check_events(done, traces)
        check("other preload: 5 allocations" in done.err, f"{order}: the other one saw: {done.err}")
        lab.empty_traces()


def test_ends_output_folder(lab):
    """No folder, and a folder that may not be written: one warning, the program goes on."""
    for folder in ("/nonexistent/folder/", "/proc/"):
        command, env = lab.preload_command([program("ends"), "exit"],
                                           {"VRAMSCOPE_OUTPUT": folder})
        done = lab.run(command, env)
        equal(f"{folder}: status", done.status, 7)
        warnings = [line for line in done.err.splitlines() if "vramscope" in line]
        equal(f"{folder}: number of warnings in {warnings}", len(warnings), 1)


def test_ends_file_is_private(lab):
    lab.traced([program("ends"), "exit"])
    mode = stat.S_IMODE(os.stat(lab.one_trace()).st_mode)
    equal("mode of the trace", oct(mode), oct(0o600))


def test_ends_never_overwrites(lab):
    """A fixed name, four processes: four files; a symbolic link is not followed."""
    target = lab.path("precious")
    with open(target, "w", encoding="utf-8") as file:
        file.write("precious\n")
    name = os.path.join(lab.traces_folder, "fixed.vscope")
    os.symlink(target, name)
    for _ in range(3):
        command, env = lab.preload_command([program("ends"), "exit"], {"VRAMSCOPE_OUTPUT": name})
        equal("status", lab.run(command, env).status, 7)
    with open(target, encoding="utf-8") as file:
        equal("the link's target", file.read(), "precious\n")
    os.unlink(name)
    traces = lab.wait_for_traces(3)
    equal("traces", len(traces), 3)
    for trace in traces:
        verify(trace)


def check_full(lab, done, folder):
    """The program went on, one warning was given, and what was written is readable."""
    equal(f"status: {done.err}", done.status, 0)
    check(done.words("wall_ns"), "the program did not finish its work")
    warnings = [line for line in done.err.splitlines() if line.startswith("vramscope: ")]
    check(any("space" in line or "large" in line or "full" in line or "limit" in line
              for line in warnings), f"no warning says why: {warnings}")
    traces = [name for name in os.listdir(folder) if name.endswith(".vscope")]
    equal("traces", len(traces), 1)
    trace = os.path.join(folder, traces[0])
    events = dump(trace, cut=True)
    check(len(events) > 100, f"only {len(events)} events are readable")
    equal("complete", report(trace, cut=True)["trace"]["complete"], False)
    say(f"{os.path.getsize(trace)} bytes written, {len(events)} events readable: {warnings[0]}")


def limited_collector(lab, most_bytes):
    """A collector that may write no larger file."""
    path = lab.path("limited-collector")
    real = os.path.join(os.path.dirname(TOOL), "vramscope-collector")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\nexec {need("prlimit")} --fsize={most_bytes} {real} "$@"\n')
    os.chmod(path, 0o755)
    return path


def test_ends_file_limit(lab):
    """RLIMIT_FSIZE of the collector: no SIGXFSZ, a warning, a readable rest. (Set on it alone:
    the simulated device keeps its memory in a file, too.)"""
    storm = lab.tool_run([program("storm"), "2", "20000", "--pause", "30"])
    done = lab.run(lab.on_simgpu(storm), {"VRAMSCOPE_COLLECTOR": limited_collector(lab, 65536)})
    check_full(lab, done, lab.traces_folder)


def test_ends_full_disk(lab):
    if os.geteuid() != 0:
        raise Skip("needs root to mount a small file system")
    unshare = need("unshare")
    script = (f"mount -t tmpfs -o size=128k none {lab.traces_folder} && "
              f'"$@"; status=$?; cp {lab.traces_folder}/* {lab.path("kept")}/; exit $status')
    os.mkdir(lab.path("kept"))
    storm = lab.tool_run([program("storm"), "2", "500000"])
    done = lab.run(lab.on_simgpu([unshare, "--mount", "sh", "-c", script, "sh", *storm]))
    check_full(lab, done, lab.path("kept"))


def test_ends_signals_pass(lab):
    """SIGTERM to `vramscope run` reaches the program; its end is the program's."""
    process = lab.start(lab.tool_run(["sh", "-c", "trap 'exit 9' TERM; echo up; sleep 5 & wait"]),
                        stdout=subprocess.PIPE)
    equal("first line", process.stdout.readline(), "up\n")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)
    equal("status", process.returncode, 9)
    missing = lab.run(lab.tool_run(["/nonexistent/program"]))
    equal("status of a missing program", missing.status, 127)
    text = lab.run(lab.tool_run(["sh", "-c", "cat; echo error >&2; exit 3"]), stdin=subprocess.DEVNULL)
    equal("status", text.status, 3)


def test_ends_folders_made(lab):
    """`vramscope run -o` makes the folders that are not there, as far as they are no patterns."""
    for output, folder in (("new/deep/", "new/deep"), ("other/%p/x.vscope", "other")):
        done = lab.run(lab.on_simgpu([TOOL, "run", "-o", output, "--", program("ends"), "exit"]))
        equal(f"{output}: status", done.status, 7)
        equal(f"{output}: folder", os.path.isdir(lab.path(folder)), True)
    equal("traces", [name.endswith(".vscope") for name in os.listdir(lab.path("new/deep"))], [True])
    equal("of a pattern", os.listdir(lab.path("other")), [])


def test_ends_switched_off(lab):
    for env in ({"VRAMSCOPE_DISABLE": "1"}, {"VRAMSCOPE_ONLY": "other*"}):
        command, environment = lab.preload_command([program("ends"), "exit"], env)
        done = lab.run(command, environment)
        equal(f"{env}: status", done.status, 7)
        equal(f"{env}: traces", lab.traces(), [])
        equal(f"{env}: stderr", done.err, "")
    command, environment = lab.preload_command([program("ends"), "exit"],
                                               {"VRAMSCOPE_ONLY": "other*,ends"})
    equal("status", lab.run(command, environment).status, 7)
    lab.wait_for_traces(1)
