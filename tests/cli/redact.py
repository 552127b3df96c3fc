#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A redacted trace says what the trace says, in other words: the same figures and the
same structure, and nothing of the names in it, unpacked chunks included.

usage: redact.py --vramscope PATH --mktrace PATH --trace-writer PATH
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from damage import HERE, Checker
from zstd_module import zstandard

TOKEN = re.compile(r"h-[0-9a-f]{16}")
ZSTD_MAGIC, HEADER_BYTES, ALIGN = b"\x28\xb5\x2f\xfd", 64, 64
# Of traces/private.txt: host, user, home, project, titles, boot id.
SECRETS = [b"magrathea", b"dont.panic", b"zaphodb", b"/home/", b"secret", b"heartgold", b"topo.xml",
           b"train.bin", b"slarti", b"bartfast", b"trillian", b"arthur", b"dent.bin", b"towel", b"beach", b"prefect",
           b"guide.example", b"beeblebrox", b"net.py", b"start.cpp", b"feedfacecafe", b"/srv/"]
KEPT = [b"site-packages/torch/lib/libc10_cuda.so", b"Net.forward", b"start_all",
        b"expandable_segments:True", b"cuMemAlloc_v2", b"pt_autograd_0", b"epoch/1_of_", b"see_https://", b"symbol@GLIBC_2.34"]
FILE_FACTS = ("file", "bytes")


def unpacked(path):
    """All bytes of a trace, and of its chunks unpacked."""
    data = path.read_bytes()
    found = [data]
    for at in range(HEADER_BYTES, len(data), ALIGN):
        if zstandard is not None and data[at:at + 4] == ZSTD_MAGIC:
            found.append(zstandard.ZstdDecompressor().decompressobj().decompress(data[at:]))
    return b"\n".join(found)


class Comparison:
    """Two values that differ in texts alone, each text always in the same way."""

    def __init__(self):
        self.words = {}
        self.wrong = []

    def text(self, before, after, where):
        if before == after and before not in self.words:
            return
        if self.words.setdefault(before, after) != after:
            self.wrong.append(f"{where}: {before!r} is {after!r} here, {self.words[before]!r} elsewhere")
        if before != after and not TOKEN.search(after):
            self.wrong.append(f"{where}: {before!r} became {after!r}")

    def compare(self, before, after, where=""):
        if isinstance(before, str) and isinstance(after, str):
            self.text(before, after, where)
        elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
            for index, (left, right) in enumerate(zip(before, after)):
                self.compare(left, right, f"{where}[{index}]")
        elif isinstance(before, dict) and isinstance(after, dict) and len(before) == len(after):
            for (left, old), (right, new) in zip(before.items(), after.items()):
                self.text(left, right, where)
                self.compare(old, new, f"{where}.{left}")
        elif before != after:
            self.wrong.append(f"{where}: {before!r} became {after!r}")


def report(checker, path):
    found = json.loads(checker.run("report", ["report", "--json", path]).stdout)
    for fact in FILE_FACTS:
        del found["trace"][fact]
    return found


def check_same(checker, trace, copy):
    """The figures of both; a longer text is the only thing that may differ."""
    done = checker.run(f"redact {trace.name}", ["redact", "--force", "-o", copy, trace])
    if done.returncode != 0:
        checker.fail("redact", [trace], done)
        return
    comparison = Comparison()
    comparison.compare(report(checker, trace), report(checker, copy))
    events = [checker.run("dump", ["dump", "--json", path]).stdout.splitlines() for path in (trace, copy)]
    comparison.compare(*[[json.loads(line) for line in lines] for lines in events])
    if comparison.wrong:
        print("\n".join(comparison.wrong[:8]))
        checker.fail("the same figures and structure", [trace.name], done)
    before, after = (checker.run("verify", ["verify", path]) for path in (trace, copy))
    if before.returncode != after.returncode:
        checker.fail("verify says the same", [trace.name], after)


def check_private(checker, trace, copy, folder):
    done = checker.run("redact", ["redact", "--force", "-o", copy, trace])
    before, after = unpacked(trace), unpacked(copy)
    for secret in SECRETS:
        if zstandard is not None and secret not in before:
            checker.fail(f"{secret} is in the trace", [trace], done)
        if secret in after:
            checker.fail(f"{secret} is in the copy", [copy], done)
    for kept in KEPT:
        if zstandard is not None and kept not in after:
            checker.fail(f"{kept} stays", [copy], done)
    again = folder / "again.vscope"
    checker.run("redact", ["redact", "-o", again, copy])
    if unpacked(again) != after:
        checker.fail("redacting a copy changes nothing", [copy], done)


def check_output(checker, trace, copy, folder):
    before = copy.read_bytes()
    done = checker.run("is there", ["redact", "-o", copy, trace])
    if done.returncode != 1 or copy.read_bytes() != before:
        checker.fail("nothing is overwritten", ["redact"], done)
    cut, shown = folder / "cut.vscope", folder / "shown.vscope"
    cut.write_bytes(trace.read_bytes()[:-80])
    done = checker.run("a cut trace", ["redact", "-o", shown, cut])
    if done.returncode != 1 or not report(checker, shown)["trace"]["events"]:
        checker.fail("what is left of a cut trace is copied", ["redact"], done)
    shown.unlink()
    cut.write_bytes(b"no trace")
    done = checker.run("no trace", ["redact", "-o", shown, cut])
    if done.returncode != 1 or list(folder.glob("shown*")):
        checker.fail("nothing is left behind", ["redact"], done)


def shapes(writer, folder):
    """Every shape of file that can be read: circular ones, holes, later versions' parts."""
    names = subprocess.run([writer], check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    for name in names:
        path = folder / f"shape-{name}.vscope"
        subprocess.run([writer, name, path], check=True)
        yield path


def main():
    parser = argparse.ArgumentParser()
    for name in ("--vramscope", "--mktrace", "--trace-writer"):
        parser.add_argument(name, required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    checker = Checker(arguments.vramscope.resolve())
    with tempfile.TemporaryDirectory(prefix="vramscope-redact-") as name:
        folder = pathlib.Path(name)
        copy = folder / "copy.vscope"
        for script in sorted((HERE / "traces").glob("*.txt")):
            trace = folder / script.with_suffix(".vscope").name
            subprocess.run([arguments.mktrace, script, trace], check=True)
            check_same(checker, trace, copy)
        for trace in shapes(arguments.trace_writer, folder):
            if trace.stem not in ("shape-critical", "shape-newer"):
                check_same(checker, trace, copy)
        check_private(checker, folder / "private.vscope", copy, folder)
        check_output(checker, folder / "private.vscope", copy, folder)
    print(f"{checker.runs} runs, {checker.failed} wrong")
    return 1 if checker.failed else 0


if __name__ == "__main__":
    sys.exit(main())
