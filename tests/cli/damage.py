#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bad input: missing, empty, cut at every byte, bits turned, a folder, not a trace.
Every command answers with one line on stderr and exit status 1, or reads what is
there; it never crashes and never hangs.

usage: damage.py --vramscope PATH --mktrace PATH [--step N]
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
COMMANDS = (["report"], ["report", "--json"], ["report", "--what-is-inside"], ["timeline", "--csv"], ["dump"], ["verify"])


class Checker:
    def __init__(self, vramscope):
        self.vramscope = vramscope
        self.runs = self.failed = 0

    def fail(self, what, words, done):
        self.failed += 1
        print(f"FAILED {what}: vramscope {' '.join(map(str, words))}: status {done.returncode}\n{done.stderr[-2000:]}")

    def run(self, what, words):
        self.runs += 1
        done = subprocess.run([self.vramscope, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              errors="replace", timeout=60, check=False)
        if done.returncode not in (0, 1):
            self.fail(what, words, done)
        elif done.returncode == 1 and (len(done.stderr.splitlines()) != 1
                                       or not done.stderr.startswith("vramscope: ")):
            self.fail(what + " (one line expected)", words, done)
        elif done.returncode == 0 and done.stderr:
            self.fail(what + " (nothing expected on stderr)", words, done)
        return done

    def must_fail(self, what, path):
        for command in COMMANDS:
            done = self.run(what, [*command, path])
            if done.returncode != 1:
                self.fail(what + " (status 1 expected)", [*command, path], done)

    def is_incomplete(self, what, path):
        """A cut file: not called complete, and never more events than there were."""
        words = ["report", "--json", path]
        done = self.run(what, words)
        if done.stdout and json.loads(done.stdout)["trace"]["complete"]:
            self.fail(what + " (called complete)", words, done)


def cut_everywhere(checker, trace, scratch, step):
    data = trace.read_bytes()
    for length in range(0, len(data), step):
        scratch.write_bytes(data[:length])
        checker.is_incomplete(f"cut at {length} of {len(data)}", scratch)
        checker.run(f"cut at {length}", ["verify", scratch])
        if length % 16 == 0:
            for command in COMMANDS:
                checker.run(f"cut at {length}", [*command, scratch])


def turn_bits(checker, trace, scratch, count):
    data = bytearray(trace.read_bytes())
    source = random.Random(7)
    for number in range(count):
        damaged = bytearray(data)
        for _ in range(source.choice([1, 1, 2, 16])):
            damaged[source.randrange(len(damaged))] ^= 1 << source.randrange(8)
        scratch.write_bytes(damaged)
        checker.run(f"bits turned, round {number}", [*source.choice(COMMANDS), scratch])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vramscope", required=True, type=pathlib.Path)
    parser.add_argument("--mktrace", required=True, type=pathlib.Path)
    parser.add_argument("--step", type=int, default=3)
    arguments = parser.parse_args()
    checker = Checker(arguments.vramscope.resolve())
    with tempfile.TemporaryDirectory(prefix="vramscope-damage-") as name:
        folder = pathlib.Path(name)
        trace, scratch = folder / "whole.vscope", folder / "scratch.vscope"
        subprocess.run([arguments.mktrace, HERE / "traces" / "fragmented.txt", trace], check=True)
        checker.must_fail("missing", folder / "missing.vscope")
        scratch.write_bytes(b"")
        checker.must_fail("empty", scratch)
        scratch.write_bytes(b"this is no trace at all\n" * 100)
        checker.must_fail("not a trace", scratch)
        (folder / "empty-folder").mkdir()
        checker.must_fail("a folder", folder / "empty-folder")
        cut_everywhere(checker, trace, scratch, arguments.step)
        turn_bits(checker, trace, scratch, 300)
    print(f"{checker.runs} runs, {checker.failed} wrong")
    return 1 if checker.failed else 0


if __name__ == "__main__":
    sys.exit(main())
