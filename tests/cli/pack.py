#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An archive for a bug report: other programs read it, nothing private is in it, it is
never larger than its limit, and the trace in it says what the trace says.

usage: pack.py --vramscope PATH --mktrace PATH
"""
import argparse
import json
import os
import pathlib
import re
import pty
import subprocess
import sys
import tempfile
import zipfile

from damage import HERE, Checker
from redact import SECRETS, Comparison, report, unpacked

MEMBERS = ["trace.vscope", "report.md", "report.txt", "report.json", "report.html"]
RANKS, FAILED_RANK, HOST = 8, 5, "magrathea-17"


def members(path):
    with zipfile.ZipFile(path) as archive:
        bad = archive.testzip()
        return {info.filename: archive.read(info) for info in archive.infolist()}, bad


def check_trace(checker, folder, trace):
    out = folder / "out.zip"
    done = checker.run("pack", ["pack", "-o", out, trace])
    found, bad = members(out)
    if done.returncode != 0 or list(found) != MEMBERS or bad is not None:
        checker.fail("an archive of five members", [trace], done)
    inside = folder / "inside" / "trace.vscope"  # beside the others it would be looked into
    inside.parent.mkdir(exist_ok=True)
    inside.write_bytes(found["trace.vscope"])
    texts = [unpacked(inside), *found.values(), done.stdout.encode()]
    for secret in SECRETS:
        if any(secret in text for text in texts):
            checker.fail(f"{secret} is not in the archive", [trace], done)
    comparison = Comparison()
    comparison.compare(report(checker, trace), report(checker, out))
    if comparison.wrong or not json.loads(found["report.json"])["schema"] == "vramscope-report/1":
        checker.fail("the same report", comparison.wrong[:3], done)
    checker.run("verify", ["verify", out])
    again = checker.run("is there", ["pack", "-o", out, trace])
    forced = checker.run("forced", ["pack", "--force", "--yes", "-o", out, trace])
    if again.returncode != 1 or forced.returncode != 0:
        checker.fail("writes over it when told to", ["pack"], again)


def check_limit(checker, folder, trace):
    out = folder / "small.zip"
    whole = members(folder / "out.zip")[0]
    limit = (folder / "out.zip").stat().st_size - 1
    done = checker.run("too large", ["pack", "--limit", str(limit), "-o", out, trace])
    found, _ = members(out)
    if done.returncode != 1 or list(found) != MEMBERS[:-1] or out.stat().st_size > limit:
        checker.fail("the page is left out, and said", ["pack"], done)
    limit = out.stat().st_size - 1
    done = checker.run("too large", ["pack", "--force", "--limit", str(limit), "-o", out, trace])
    found, _ = members(out)
    if done.returncode != 1 or list(found) != MEMBERS[1:-1] or out.stat().st_size > limit:
        checker.fail("the trace is left out, and said", ["pack"], done)
    if found["report.json"] != whole["report.json"]:
        checker.fail("the reports are of all of it", ["pack"], done)
    out.unlink()
    done = checker.run("nothing fits", ["pack", "--limit", "100", "-o", out, trace])
    if done.returncode != 1 or list(folder.glob("small*")):
        checker.fail("nothing is left behind", ["pack"], done)


def ask(checker, out, trace, answer):
    """The exit status with a terminal at both ends and `answer` typed."""
    master, slave = pty.openpty()
    os.write(master, answer)
    done = subprocess.run([checker.vramscope, "pack", "-o", out, trace], stdin=slave, stdout=slave,
                          stderr=subprocess.DEVNULL, timeout=60, check=False)
    os.close(slave)
    os.close(master)
    return done.returncode


def check_question(checker, folder, trace):
    no, yes = folder / "no.zip", folder / "yes.zip"
    if ask(checker, no, trace, b"n\n") != 1 or no.exists():
        checker.failed += 1
        print("FAILED: refused, and nothing is written")
    if ask(checker, yes, trace, b"y\n") != 0 or not yes.exists():
        checker.failed += 1
        print("FAILED: agreed, and it is written")


def make_ranks(mktrace, folder):
    """Eight ranks whose file names hold the host; one ended in a failure, another held most."""
    folder.mkdir()
    for rank in range(RANKS):
        size = 6 if rank == 2 else 1
        lines = [f'meta process {{"pid":{100 + rank},"rank":{rank},"world_size":{RANKS},"host":"{HOST}"}}',
                 "meta clock {\"start\":{\"monotonic_ns\":1000000000}}",
                 f'meta end {{"ended":"exit","exit_code":{int(rank == FAILED_RANK)},"complete":true}}',
                 "device 0 16G Test GPU",
                 f"alloc dev=0 call=cuMemAlloc_v2 module=/x/app addr=0x700000000 size={size}G"]
        if rank == FAILED_RANK:
            lines.append("alloc dev=0 call=cuMemAlloc_v2 module=/x/app size=15G free=13G res=2")
        lines.append(f"process_end handle=1 x0={int(rank == FAILED_RANK)}")
        script = folder / "script.txt"
        script.write_text("\n".join(lines) + "\n")
        subprocess.run([mktrace, script, folder / f"app.r{rank}.{HOST}.{100 + rank}.vscope"], check=True)
        script.unlink()


def check_folder(checker, folder, mktrace):
    ranks, out = folder / "run", folder / "ranks.zip"
    make_ranks(mktrace, ranks)
    first = json.loads(checker.run("eight ranks", ["report", "--json", ranks]).stdout)
    others = sorted(other["rank"] for other in first["others"])
    if first["process"]["rank"] != FAILED_RANK or others != [r for r in range(RANKS) if r != FAILED_RANK]:
        checker.failed += 1
        print(f"FAILED: the failed rank is reported, the others listed: {others}")
    done = checker.run("pack of eight ranks", ["pack", "-o", out, ranks])
    found, _ = members(out)
    packed = json.loads(found["report.json"])
    if packed["process"]["rank"] != FAILED_RANK or len(packed["others"]) != RANKS - 1:
        checker.fail("the failed rank is packed", ["pack"], done)
    if any(HOST.encode() in text for text in found.values()):
        checker.fail("file names do not give the host away", ["pack"], done)
    markdown = checker.run("markdown", ["report", "--markdown", ranks]).stdout
    listed = [int(rank) for rank in re.findall(r"^ +(\d+) .* GiB +normally ", markdown, re.M)]
    if len(markdown.splitlines()) > 60 or len(markdown.encode()) > 8192 or listed != others:
        checker.fail("the ranks fit into the Markdown", ["report"], done)


def check_all_ranks(checker, folder):
    """Unpacked, the archive is a folder of all ranks; packed, it is the failed one's."""
    ranks, out, unpacked_ranks = folder / "run", folder / "all.zip", folder / "unpacked"
    done = checker.run("all ranks", ["pack", "--all", "-o", out, ranks])
    found, bad = members(out)
    others = [name for name in found if name not in MEMBERS]
    if done.returncode != 0 or bad is not None or len(others) != RANKS - 1 or list(found)[:5] != MEMBERS:
        checker.fail(f"all ranks are packed: {list(found)}", ["pack", "--all"], done)
    if any(HOST.encode() in text for text in [*found.values(), done.stdout.encode(), *map(str.encode, found)]):
        checker.fail("the other ranks do not give the host away", ["pack", "--all"], done)
    with zipfile.ZipFile(out) as archive:
        archive.extractall(unpacked_ranks)
    told = json.loads(checker.run("unpacked ranks", ["report", "--json", unpacked_ranks]).stdout)
    same = json.loads(checker.run("packed ranks", ["report", "--json", out]).stdout)
    ids = sorted(other["rank"] for other in told["others"])
    if (told["process"]["rank"], same["process"]["rank"]) != (FAILED_RANK, FAILED_RANK) or \
            ids != [rank for rank in range(RANKS) if rank != FAILED_RANK]:
        checker.fail(f"unpacked, all ranks are there: {ids}", ["report"], done)
    listed = json.loads(found["report.json"])["others"]
    if sorted(other["file"] for other in listed) != sorted(others):
        checker.fail(f"the report names the files: {listed} {others}", ["pack", "--all"], done)
    limit = out.stat().st_size - 1
    done = checker.run("ranks that do not fit", ["pack", "--all", "--force", "--limit", str(limit), "-o", out, ranks])
    found, _ = members(out)
    if done.returncode != 1 or "1 of the other traces do not fit" not in done.stderr or len(found) != 5 + RANKS - 2 \
            or out.stat().st_size > limit:
        checker.fail(f"one rank is left out, and said to be: {len(found)}", ["pack", "--all", "--limit"], done)


def check_markdown(checker, trace):
    done = checker.run("markdown", ["report", "--markdown", trace])
    if len(done.stdout.splitlines()) > 60 or len(done.stdout.encode()) > 8192:
        checker.fail(f"{trace.name}: at most 60 lines and 8 KiB", ["report"], done)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vramscope", required=True, type=pathlib.Path)
    parser.add_argument("--mktrace", required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    checker = Checker(arguments.vramscope.resolve())
    with tempfile.TemporaryDirectory(prefix="vramscope-pack-") as name:
        folder = pathlib.Path(name)
        for script in sorted((HERE / "traces").glob("*.txt")):
            trace = folder / script.with_suffix(".vscope").name
            subprocess.run([arguments.mktrace, script, trace], check=True)
            check_markdown(checker, trace)
        trace = folder / "private.vscope"
        check_trace(checker, folder, trace)
        check_limit(checker, folder, trace)
        check_question(checker, folder, trace)
        check_folder(checker, folder, arguments.mktrace)
        check_all_ranks(checker, folder)
    print(f"{checker.runs} runs, {checker.failed} wrong")
    return 1 if checker.failed else 0


if __name__ == "__main__":
    sys.exit(main())
