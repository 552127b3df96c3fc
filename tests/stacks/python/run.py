# SPDX-License-Identifier: Apache-2.0
"""Runs the comparisons of one version of Python: run.py VERSION [--slow]. 77: it is not installed."""
import glob
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SKIPPED = 77
ROUNDS, ROUNDS_SLOW = 30, 1000
# Layouts of all versions that say nothing of themselves, and one that is not known at all.
PRETENDED = ["030%x00f0" % minor for minor in (8, 9, 10, 11, 12)] + ["031000f0", "040000f0"]


def find(version):
    """The newest interpreter of a minor version; "system" is the one that came with the machine."""
    if version == "system":
        return "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else None
    root = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    found = glob.glob(os.path.join(root, "versions", version + ".*", "bin", "python" + version))
    found.sort(key=lambda path: int(re.search(re.escape(version) + r"\.(\d+)", path).group(1)))
    brought = os.environ.get("VRAMSCOPE_PYTHONS")  # by scripts/python-env
    return found[-1] if found else shutil.which("python" + version) or brought and shutil.which("python" + version, path=brought)


class Runner:
    def __init__(self, python, build):
        self.python, self.build = python, build
        self.failed = []
        self.minor = int(self.output([python, "-c", "import sys; print(sys.version_info[1])"]))

    def output(self, command, **variables):
        environment = dict(os.environ, FRAMES_LAB=os.path.join(self.build, "libframes_lab.so"), FRAMES_CASES=HERE,
                           PYTHONDONTWRITEBYTECODE="1", MALLOC_PERTURB_="165", **variables)
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=HERE,
                              timeout=3000, universal_newlines=True)
        self.status = done.returncode
        return done.stdout

    def script(self, name, *arguments, **variables):
        return self.output([self.python, os.path.join(HERE, name)] + list(arguments), **variables)

    def expect(self, what, ok, output):
        if not ok:
            self.failed.append(what)
            print("FAILED %s (status %s)\n%s" % (what, self.status, output[-4000:]), flush=True)

    def compare(self, slow):
        output = self.script("compare.py", *(["--slow"] if slow else []))
        print(output, end="", flush=True)
        self.expect("compare", self.status == 0, output)

    def controls(self):
        """A rule of the walk is broken: the comparison has to notice."""
        rules = {"offsets": "calls", "texts": "code", "identity": "code"}
        if self.minor == 11:
            rules["entry"] = "calls"
        if self.minor >= 12:
            rules["shims"] = "calls"
        if self.minor >= 13:
            rules["constructor"] = "calls"
        for rule, room in rules.items():
            output = self.script("compare.py", "--only", room, "--break", rule, FRAMES_BREAK=rule)
            cannot_tell = rule == "entry" and "have no names" in output
            self.expect("control: %s" % rule, self.status != 0 or cannot_tell, output)
        print("  noticed when broken: %s" % ", ".join(rules), flush=True)

    def process(self):
        output = self.script("process.py")
        self.expect("process", self.status == 0, output)
        for version in PRETENDED:
            output = self.script("process.py", FRAMES_VERSION=version)
            self.expect("pretending to be %s" % version, self.status == 0, output)

    def end(self, rounds):
        bad = own = 0
        for _ in range(rounds):
            output = self.script("end.py")
            if "ok\n" in output and "crashed by itself\n" in output:
                own += 1  # see frames_crash.c
            elif self.status != 0 or "ok\n" not in output:
                bad += 1
                self.expect("end", False, output)
        print("  %d ends with daemon threads at work, %d bad, in %d CPython crashed by itself"
              % (rounds, bad, own), flush=True)

    def subinterpreters(self):
        output = self.script("subinterpreters.py")
        self.expect("sub-interpreters", self.status == 0, output)

    def embedded(self):
        """3.12.0 and 3.12.1 cannot begin a second time, whoever looks on."""
        code = ("import sys, sysconfig, os; v = sysconfig.get_config_vars(); "
                "print(os.path.join(v['LIBDIR'], v['INSTSONAME'] or '')); print(sys.base_prefix)")
        library, prefix = self.output([self.python, "-c", code]).split("\n")[:2]
        if ".so" not in library or not os.path.exists(library):
            print("  no shared libpython: not embedded")
            return
        output = self.output([os.path.join(self.build, "frames_host"), os.path.join(self.build, "libframes_lab.so"),
                              library, os.path.join(HERE, "embedded.py"), "1" if self.minor == 12 else "3"],
                             PYTHONHOME=prefix)
        self.expect("embedded", self.status == 0, output)


def main():
    version, slow = sys.argv[1], "--slow" in sys.argv
    python = find(version)
    if python is None:
        print("Python %s is not installed" % version)
        return SKIPPED
    print("%s is %s" % (version, python), flush=True)
    runner = Runner(python, os.environ["FRAMES_BUILD"])
    runner.compare(slow)
    runner.end(ROUNDS_SLOW if slow else ROUNDS)
    if not slow:
        runner.controls()
        runner.process()
        runner.subinterpreters()
        runner.embedded()
    return 1 if runner.failed else 0


if __name__ == "__main__":
    sys.exit(main())
