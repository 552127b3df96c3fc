#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Traces inside gzip, zstd and zip say what they say outside, whatever the file is
called; cut and damaged ones say one line and what is left; a bomb is refused.

usage: packed.py --vramscope PATH --mktrace PATH
"""
import argparse
import gzip
import io
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import zipfile

from damage import HERE, Checker
from zstd_module import zstandard

BOMB_MIB = 400


class Stream:
    """A file that cannot go back: the sizes of an archive's members follow them."""

    def __init__(self, path):
        self.file = open(path, "wb")

    def write(self, data):
        return self.file.write(data)

    def flush(self):
        self.file.flush()


def make_zip(out, trace, method, first="notes.txt"):
    with zipfile.ZipFile(out, "w", method) as archive:
        archive.writestr(first, "no trace\n" * 300)
        archive.write(trace, "deep/inside")


def zip_of(trace, method):
    out = io.BytesIO()
    make_zip(out, trace, method)
    return out.getvalue()


def packings(trace, folder):
    data = trace.read_bytes()
    streamed = folder / "streamed"
    out = Stream(streamed)
    make_zip(out, trace, zipfile.ZIP_DEFLATED)
    out.file.close()
    half = len(data) // 2
    found = {}
    if zstandard is None:
        print("zstd was not tried: Python has no module zstandard")
    else:
        compress = zstandard.ZstdCompressor().compress
        found = {"zstd": compress(data), "zstd of two frames": compress(data[:half]) + compress(data[half:])}
    return found | {
        "gzip": gzip.compress(data),
        "gzip of two members": gzip.compress(data[:half]) + gzip.compress(data[half:]),
        "zip": zip_of(trace, zipfile.ZIP_DEFLATED),
        "zip, stored": zip_of(trace, zipfile.ZIP_STORED),
        "zip, streamed": streamed.read_bytes(),
    }


def facts(done):
    """A report without the trace's name."""
    found = json.loads(done.stdout)
    del found["trace"]["file"]
    return found


def check_same(checker, name, path, trace):
    for command in (["report", "--json"], ["dump"], ["timeline", "--csv"], ["verify"]):
        plain, packed = (checker.run(name, [*command, one]) for one in (trace, path))
        same = facts(plain) == facts(packed) if "report" in command else plain.stdout == packed.stdout
        if not same or packed.returncode != plain.returncode:
            checker.fail(f"{name}: not what the trace itself gives", command, packed)


def check_damage(checker, name, data, path, events):
    source = random.Random(11)
    for number in range(6):
        length = source.randrange(5, len(data) - 100)
        path.write_bytes(data[:length])
        done = checker.run(f"{name} cut at {length}", ["report", "--json", path])
        # A cut in the archive's directory, or behind the trace, takes nothing from it.
        if done.stdout and json.loads(done.stdout)["trace"]["events"] > events:
            checker.fail(f"{name} cut at {length}: more events than there were", ["report"], done)
        if name in ("gzip", "zstd") and done.returncode != 1:
            checker.fail(f"{name} cut at {length}: not told", ["report"], done)
        damaged = bytearray(data)
        for _ in range(1 + number % 3):
            damaged[source.randrange(len(data))] ^= 1 << source.randrange(8)
        path.write_bytes(damaged)
        checker.run(f"{name} damaged, round {number}", ["report", path])


def check_partly_readable(checker, trace, path):
    """What stands before the cut is shown."""
    data = zip_of(trace, zipfile.ZIP_STORED)
    path.write_bytes(data[:data.index(trace.read_bytes()) + trace.stat().st_size - 64])
    done = checker.run("cut near the end", ["report", "--json", path])
    if done.returncode != 1 or json.loads(done.stdout)["trace"]["events"] == 0:
        checker.fail("cut near the end: what is there is shown", ["report"], done)


def check_no_trace(checker, path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("notes.txt", "no trace\n")
    checker.must_fail("a zip without a trace", path)
    path.write_bytes(gzip.compress(b"no trace\n"))
    checker.must_fail("a text in gzip", path)


def check_bomb(checker, path):
    piece = bytes(1 << 20)
    with gzip.open(path, "wb", 1) as file:
        for _ in range(BOMB_MIB):
            file.write(piece)
    done = checker.run("a bomb", ["report", path])
    if done.returncode != 1 or "unpacks to more than" not in done.stderr:
        checker.fail("a bomb is refused", ["report"], done)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vramscope", required=True, type=pathlib.Path)
    parser.add_argument("--mktrace", required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    checker = Checker(arguments.vramscope.resolve())
    with tempfile.TemporaryDirectory(prefix="vramscope-packed-") as name:
        folder = pathlib.Path(name)
        trace, path = folder / "whole.vscope", folder / "a picture.png"
        subprocess.run([arguments.mktrace, HERE / "traces" / "fragmented.txt", trace], check=True)
        events = json.loads(checker.run("plain", ["report", "--json", trace]).stdout)["trace"]["events"]
        for kind, data in packings(trace, folder).items():
            path.write_bytes(data)
            check_same(checker, kind, path, trace)
            check_damage(checker, kind, data, path, events)
        check_partly_readable(checker, trace, path)
        check_no_trace(checker, path)
        check_bomb(checker, path)
    print(f"{checker.runs} runs, {checker.failed} wrong")
    return 1 if checker.failed else 0


if __name__ == "__main__":
    sys.exit(main())
