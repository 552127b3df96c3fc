# SPDX-License-Identifier: Apache-2.0
"""What the tests of exports share: the command, and traces made from scripts."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "tests" / "cli" / "traces"


class Lab:
    def __init__(self, arguments, folder):
        self.program = str(arguments.vramscope)
        self.mktrace = str(arguments.mktrace)
        self.folder = folder

    def trace(self, name, text=None):
        """A trace of tests/cli/traces, or of a script given here."""
        out = self.folder / f"{name}.vscope"
        script = SCRIPTS / f"{name}.txt"
        if text is not None:
            script = self.folder / f"{name}.txt"
            script.write_text(text)
        if not out.exists():
            subprocess.run([self.mktrace, script, out], check=True)
        return out

    def traces(self):
        return [self.trace(script.stem) for script in sorted(SCRIPTS.glob("*.txt"))]

    def run(self, *words, status=0):
        done = subprocess.run([self.program, *map(str, words)], capture_output=True, timeout=60,
                              cwd=self.folder, check=False)
        assert done.returncode == status, (words, done.returncode, done.stderr)
        return done

    def export(self, name, trace, *options):
        done = self.run("export", "-f", name, "-o", "-", *options, trace)
        assert done.stderr == b"", done.stderr
        return done.stdout

    def json(self, *words):
        return json.loads(self.run(*words).stdout)

    def lines(self, *words):
        return [json.loads(line) for line in self.run(*words).stdout.splitlines()]


def main(tests):
    parser = argparse.ArgumentParser()
    parser.add_argument("--vramscope", required=True, type=lambda path: os.path.abspath(path))
    parser.add_argument("--mktrace", required=True, type=lambda path: os.path.abspath(path))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="vramscope-export-") as name:
        for test in tests:
            folder = pathlib.Path(name) / test.__name__
            folder.mkdir()
            test(Lab(arguments, folder))
            print(f"ok {test.__name__}")
    sys.exit(0)
