# SPDX-License-Identifier: Apache-2.0
"""Names in whole runs on the simulated device: while the program runs, later and
elsewhere, with a symbolizer that crashes or hangs, in traces that are cut, full,
private or still being written."""

import json
import os
import resource
import shutil
import signal
import subprocess
import time

from lab import (BUILD, TOOL, Failed, Lab, check, collectors_of, equal, processes, report, say,
                 verify)
from symbol_lab import HERE, SYMBOLIZER, Folder, run
from test_client import fake, still_running

INSTALLED = ("vramscope", "vramscope-collector", "vramscope-symbolizer")


class Site:
    """A program with its library in a folder of its own, and a copy of the product whose
    symbolizer can be another one."""

    def __init__(self, symbolizer=None, **environment):
        self.folder = Folder().__enter__()
        self.lab = Lab()
        self.home = self.folder.file("home")
        self.product = self.folder.file("product")
        self.environment = environment
        os.mkdir(self.home)
        self.library = self.folder.build("library.c", "home/libstep.so", "-O2", "-g", "-shared",
                                         "-fPIC")
        self.program = self.folder.build(
            "allocates.c", "home/allocates", "-O2", "-g", "-Wl,-rpath,$ORIGIN",
            libraries=[self.library])
        for name in ("allocates.o", "libstep.so.o"):
            os.unlink(os.path.join(self.home, name))
        if symbolizer is not None:
            self.install(symbolizer)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.lab.close()
        self.folder.__exit__(*error)

    def install(self, symbolizer):
        """The built product with another symbolizer; "" for none."""
        shutil.copytree(os.path.join(BUILD, "lib"), os.path.join(self.product, "lib"))
        os.mkdir(os.path.join(self.product, "bin"))
        for name in INSTALLED:
            shutil.copy(os.path.join(BUILD, "bin", name), os.path.join(self.product, "bin", name))
        place = os.path.join(self.product, "bin", "vramscope-symbolizer")
        os.unlink(place)
        if symbolizer:
            os.rename(symbolizer, place)

    def tool(self):
        return os.path.join(self.product, "bin", "vramscope") if os.path.isdir(self.product) \
            else TOOL

    def command(self, *arguments):
        return self.lab.on_simgpu([self.tool(), "run", "-o", self.lab.traces_folder + "/", "--",
                                   self.program, *arguments])

    def record(self, *arguments):
        done = self.lab.run(self.command(*arguments), self.environment)
        equal("the program's exit status", done.status, 0)
        return self.lab.one_trace(), done

    def gone(self):
        """The program's files are somewhere else now."""
        elsewhere = self.folder.file("elsewhere")
        os.rename(self.home, elsewhere)
        return elsewhere


def stacks(trace):
    """Native frames of all stacks: {(function, base name of the file, line, module)}."""
    done = subprocess.run([TOOL, "dump", "--json", "--stacks", trace], capture_output=True,
                          text=True)
    frames = set()
    for line in done.stdout.splitlines():
        for frame in json.loads(line).get("frames", ()):
            if frame["kind"] == "native":
                frames.add((frame.get("function"), os.path.basename(frame.get("file") or ""),
                            frame.get("line", 0), os.path.basename(frame.get("module") or "")))
    return frames


def functions_of(trace, module):
    return {frame[0] for frame in stacks(trace) if frame[3] == module}


def symbolize(trace, *options, tool=TOOL, status=0):
    done = subprocess.run([tool, "symbolize", *options, trace], capture_output=True, text=True,
                          timeout=120)
    equal(f"symbolize {' '.join(options)} ({done.stdout}{done.stderr})", done.returncode, status)
    return done


WANTED_PROGRAM = {"step_in_program", "main", "_start"}
WANTED_LIBRARY = {"step_in_library", "hidden_step"}


def check_all_named(trace):
    equal("the program's functions", functions_of(trace, "allocates"), WANTED_PROGRAM)
    equal("the library's functions", functions_of(trace, "libstep.so"), WANTED_LIBRARY)
    lines = {(f[1], f[2]) for f in stacks(trace) if f[0] in ("step_in_program", "hidden_step")}
    check(all(file in ("allocates.c", "library.c") and line > 0 for file, line in lines),
          f"places in the source: {lines}")


def facts(trace):
    """The "symbols" facts of a trace."""
    return json.loads(run(os.path.join(BUILD, "bin", "symbols-facts"), trace))


def test_run_moved():
    """Names come during the run: the files may be gone when the trace is read."""
    with Site() as site:
        trace, _ = site.record("20")
        site.gone()
        check_all_named(trace)
        verify(trace)
        known = facts(trace)
        equal("state", known["state"], "ok")
        equal("all answered", known["addresses"], known["named"] + known["nothing_known"])
        equal("modules without names", known["modules_without_names"], [])
        say(f"{known['addresses']} addresses, {known['named']} named")


def test_run_later():
    """Without a symbolizer in the run, `symbolize` names later: there, and elsewhere."""
    with Site("") as site:
        trace, _ = site.record("20")
        equal("nothing has a name", functions_of(trace, "allocates"), {None})
        check("not beside" in facts(trace)["state"], f"why: {facts(trace)}")
        copy = site.folder.file("copy.vscope")
        shutil.copy(trace, copy)
        done = symbolize(trace)
        check(" 0 have none" in done.stdout, done.stdout)
        check_all_named(trace)
        verify(trace)
        done = symbolize(trace)
        check(" 0 got one now" in done.stdout, f"again: {done.stdout}")

        elsewhere = site.gone()
        done = symbolize(copy)
        check("file not found" in done.stdout and "allocates" in done.stdout, done.stdout)
        size = os.path.getsize(copy)
        with open(copy, "rb") as file:
            before = file.read()
        symbolize(copy, "--debug-dir", elsewhere)
        with open(copy, "rb") as file:
            equal("what was there stays", file.read()[:size], before)
        check_all_named(copy)
        verify(copy)
        answer = json.loads(symbolize(copy, "--again", "--json", "--debug-dir", elsewhere).stdout)
        equal("asked about all again", answer["unnamed"], 0)
        check(answer["named"] == answer["addresses"] > 5, f"{answer}")
        verify(copy)


def test_run_append():
    """Nothing is lost: read-only, being written, cut, full disk, no trace, wrong usage."""
    with Site("") as site:
        trace, _ = site.record("20")
        with open(trace, "rb") as file:
            whole = file.read()

        missing = subprocess.run([site.tool(), "symbolize", trace], capture_output=True, text=True)
        equal("without a symbolizer", missing.returncode, 1)
        check("vramscope-symbolizer" in missing.stderr and missing.stderr.count("\n") == 1,
              missing.stderr)

        if os.geteuid() != 0:
            os.chmod(trace, 0o400)
            check("work on a copy" in symbolize(trace, status=1).stderr, "read-only")
            os.chmod(trace, 0o600)

        limited = subprocess.run(
            [TOOL, "symbolize", trace], capture_output=True, text=True,
            preexec_fn=lambda: (signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
                                resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 100,) * 2)))
        equal("no room", limited.returncode, 1)
        check("the trace is as it was" in limited.stderr, limited.stderr)
        with open(trace, "rb") as file:
            equal("the file after it", file.read() == whole, True)

        cut = site.folder.file("cut.vscope")
        for bytes_kept in (len(whole) - 64, len(whole) - 200, len(whole) * 2 // 3 + 5):
            with open(cut, "wb") as file:
                file.write(whole[:bytes_kept])
            before = wholeness(cut)
            for _ in range(2):  # the second time over what was added
                symbolize(cut, "--again", status=1 if before["stderr"] else 0)
                equal(f"what is said of a trace cut at {bytes_kept}", wholeness(cut), before)
            check(None not in functions_of(cut, "allocates") or before["events"] == 0,
                  f"names in a cut trace: {functions_of(cut, 'allocates')}")

        unfinished = site.folder.file("unfinished.vscope")
        with open(unfinished, "wb") as file:
            file.write(whole[:-64]) # no END
            file.flush()
            check("still being written" in symbolize(unfinished, status=1).stderr, "being written")
        symbolize(unfinished)
        check_all_named(unfinished)

        for path in ("/dev/null", site.program, site.folder.file("nothing")):
            equal(f"{path}: lines", symbolize(path, status=1).stderr.count("\n"), 1)
        symbolize(trace, "--debug-dir", "/nowhere", status=1)
        symbolize(trace, "--sideways", status=2)
        equal("--debug-dir without a value",
              subprocess.run([TOOL, "symbolize", trace, "--debug-dir"],
                             capture_output=True).returncode, 2)


def wholeness(trace):
    """What readers say about how whole a trace is."""
    said = {name: report(trace, cut=True)["trace"][name]
            for name in ("events", "lost", "torn", "complete", "truncated", "ended")}
    done = subprocess.run([TOOL, "dump", trace], capture_output=True, text=True)
    equal("dump's exit status tells what its message tells", done.returncode, int(bool(done.stderr)))
    return {**said, "stderr": done.stderr}


def test_run_crash():
    """A symbolizer that crashes at every address costs the names and nothing else."""
    with Folder() as folder, Site(fake(folder, "always-crash")) as site:
        trace, done = site.record("20")
        verify(trace)
        equal("complete", report(trace)["trace"]["complete"], True)
        known = facts(trace)
        equal("named", known["named"], 0)
        check(known["state"] == "ok" or "too often" in known["state"], f"{known}")
        check(known["modules_without_names"] or known["unanswered"], f"{known}")
        check("symbolizer" not in done.err, f"the program's stderr: {done.err}")
        symbolize(trace)
        check_all_named(trace)


def test_run_hang():
    """A symbolizer that hangs, or never says hello, does not hold the collector up."""
    for mode in ("always-hang", "mute"):
        with Folder() as folder, Site(fake(folder, mode)) as site:
            began = time.monotonic()
            trace, _ = site.record("20")
            seconds = time.monotonic() - began
            check(seconds < 10, f"{mode}: {seconds:.1f} s")
            verify(trace)
            equal("complete", report(trace)["trace"]["complete"], True)
            check(facts(trace)["unanswered"] > 0, f"{facts(trace)}")
            time.sleep(0.3)
            check(not still_running(site.folder.path), f"{mode}: something is left")
            say(f"{mode}: run and trace took {seconds:.1f} s")


def test_run_private():
    """With VRAMSCOPE_PRIVATE no path of a source file is told, also not by symbolize."""
    with Site(VRAMSCOPE_PRIVATE="1") as site:
        trace, _ = site.record("20")
        for when in ("during the run", "later"):
            frames = stacks(trace)
            names = {frame[0] for frame in frames}
            check({"step_in_program", "hidden_step"} <= names, f"{when}: {names}")
            text = subprocess.run([TOOL, "dump", "--json", "--stacks", trace], capture_output=True,
                                  text=True).stdout
            for secret in (HERE, site.home, "allocates.c", "library.c"):
                check(secret not in text, f"{when}: {secret} is told")
            symbolize(trace, "--again", "--debug-dir", site.home)


def test_run_killed():
    """Collector and program killed together: the names that were in the file stay, and no
    symbolizer is left."""
    with Site() as site:
        process = site.lab.start(site.command("100000", "5"))
        check(process.stdout.readline().strip() == "ready", "the program did not start")
        wait_for_names(site.lab)
        collectors = collectors_of(site.lab.traces_folder)
        symbolizers = [pid for pid, (parent, name) in processes().items()
                       if parent in collectors and name.startswith("vramscope-symb")]
        equal("collectors, symbolizers", (len(collectors), len(symbolizers)), (1, 1))
        for pid in collectors + [pid for pid in processes() if runs(pid, site.program)]:
            os.kill(pid, signal.SIGKILL)
        process.wait(timeout=30)
        trace = site.lab.one_trace()
        check_all_named(trace)
        until = time.monotonic() + 10
        while any(runs(pid, SYMBOLIZER) for pid in symbolizers):
            check(time.monotonic() < until, "the symbolizer outlives its collector")
            time.sleep(0.05)
        symbolize(trace)
        check_all_named(trace)


def wait_for_names(lab):
    """Until the trace that is being written names everything."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        if any(WANTED_LIBRARY == functions_of(trace, "libstep.so") and
               WANTED_PROGRAM == functions_of(trace, "allocates") for trace in lab.traces()):
            return
        time.sleep(0.2)
    raise Failed("no names in 30 s")


def runs(pid, executable):
    try:
        return os.readlink(f"/proc/{pid}/exe") == executable
    except OSError:
        return False
