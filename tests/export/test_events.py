#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""csv and json against `dump --json`, the filters, and the file that is written:
test_events.py --vramscope PROGRAM --mktrace PROGRAM."""

import csv
import json
import os
import resource
import signal
import subprocess

import lab

FILTERS = {"cut": {"events_cut": 1200}}  # of a trace that is cut

SMALL = """
alloc dev=0 call=cuMemAlloc_v2 addr=0x700000000 size=1M
alloc dev=1 call=cuMemAlloc_v2 addr=0x800000000 size=64K
alloc dev=0 call=cuMemAlloc_v2 addr=0x700100000 size=4K module=/a,"b"/c.so
free dev=0 call=cuMemFree_v2 addr=0x700100000
mark dev=-1 text=one;"two"
free dev=1 call=cuMemFree_v2 addr=0x800000000
free dev=0 call=cuMemFree_v2 addr=0x700000000
process_end dev=-1 handle=1
"""


def rows(text):
    return list(csv.DictReader(line for line in text.decode().splitlines(True)
                               if not line.startswith("#")))


def test_json_is_the_dump(here):
    for trace in here.traces():
        expected = here.lines("dump", "--json", "--stacks", trace)
        head, *got = [json.loads(line) for line in here.export("json", trace).splitlines()]
        assert head["schema"] == "vramscope-events/1" and head["filter"] == FILTERS.get(trace.stem, {})
        for line in got:
            if "time_ns" in line:
                line["time_ns"] += head["start_ns"]
        assert got == expected, trace


def test_csv_is_the_dump(here):
    for trace in here.traces():
        expected = here.lines("dump", "--json", trace)
        start = json.loads(here.export("json", trace).splitlines()[0])["start_ns"]
        got = rows(here.export("csv", trace))
        assert len(got) == len(expected)
        for row, event in zip(got, expected):
            assert int(row.pop("time_ns")) + start == event.pop("time_ns")
            flags = event.pop("flags", [])
            assert bin(int(row.pop("flags") or 0)).count("1") == len(flags)
            event.pop("result", None)
            assert {name: value for name, value in row.items() if value} == {
                name: str(value) for name, value in event.items()}, (row, event)


def test_csv_quotes(here):
    trace = here.trace("small", SMALL)
    got = rows(here.export("csv", trace))
    assert got[2]["module"] == '/a,"b"/c.so'
    assert got[4]["label"] == 'one;"two"'


def kinds(here, trace, *options):
    return [(row["kind"], row["device"]) for row in rows(here.export("csv", trace, *options))]


def test_filters(here):
    trace = here.trace("small", SMALL)
    assert kinds(here, trace, "--device", "1") == [("alloc", "1"), ("mark", ""), ("free", "1"),
                                                   ("process_end", "")]
    large = rows(here.export("csv", trace, "--min-bytes", "64K"))
    assert [row["address"] for row in large if row["kind"] in ("alloc", "free")] == [
        str(0x700000000), str(0x800000000), str(0x800000000), str(0x700000000)]
    window = rows(here.export("csv", trace, "--from", "2ms", "--to", "4ms"))
    assert [row["kind"] for row in window] == ["alloc", "free", "mark"]
    late = rows(here.export("csv", trace, "--from", "-1ms"))
    assert [row["kind"] for row in late] == ["free", "process_end"]
    assert [row["kind"] for row in rows(here.export("csv", trace, "--last", "2"))] == [
        "free", "process_end"]
    assert [row["kind"] for row in rows(here.export("csv", trace, "--last", "99"))][0] == "alloc"


def test_what_was_left_out_is_said(here):
    trace = here.trace("small", SMALL)
    assert not here.export("csv", trace).startswith(b"#")
    said = here.export("csv", trace, "--from", "1ms", "--device", "0", "--min-bytes", "4K",
                       "--last", "3").splitlines()[0].decode()
    assert said == ("# vramscope export: only events: from 1000000 ns, device 0, "
                    "at least 4096 bytes, the last 3 events")
    head = json.loads(here.export("json", trace, "--to", "2ms", "--last", "3").splitlines()[0])
    assert head["filter"] == {"to_ns": 2000000, "last": 3}


def complaint(here, *words, status):
    lines = here.run("export", *words, status=status).stderr.decode().splitlines()
    assert len(lines) == 1, lines
    return lines[0]


def test_usage(here):
    trace = here.trace("small", SMALL)
    said = complaint(here, "-f", "xls", "-o", "-", trace, status=2)
    assert "not 'xls'" in said and "csv" in said and "pprof" in said
    for words in (("-o", "-", trace), ("-f", "csv", trace), ("-f", "csv", "-o", "-"),
                  ("-f", "csv", "-o", "-", "--from", "soon", trace),
                  ("-f", "csv", "-o", "-", "--last", "0", trace),
                  ("-f", "csv", "-o", "-", "--device", "-1", trace),
                  ("-f", "csv", "-o", "-", "--min-bytes", "big", trace),
                  ("-f", "folded", "-o", "-", "--at", "noon", trace),
                  ("-f", "folded", "-o", "-", "--metric", "heat", trace)):
        complaint(here, *words, status=2)
    assert "before it begins" in complaint(here, "-f", "csv", "-o", "-", "--from", "2ns", "--to",
                                           "1ns", trace, status=1)
    assert "after the run's end" in complaint(here, "-f", "csv", "-o", "-", "--from", "3600",
                                              trace, status=1)
    assert "nothing failed" in complaint(here, "-f", "folded", "-o", "-", "--at", "oom", trace,
                                         status=1)
    assert "there.vscope" in complaint(here, "-f", "csv", "-o", "x.csv", "there.vscope", status=1)
    assert not (here.folder / "x.csv").exists()


def names(here):
    return sorted(path.name for path in here.folder.iterdir() if path.suffix != ".txt")


def test_files(here):
    trace = here.trace("small", SMALL)
    expected = here.export("csv", trace)
    out, link = here.folder / "out.csv", here.folder / "link.csv"
    here.run("export", "-f", "csv", "-o", out, trace)
    assert out.read_bytes() == expected
    umask = os.umask(0)
    os.umask(umask)
    assert out.stat().st_mode & 0o777 == 0o666 & ~umask
    out.write_text("mine")
    assert "--force" in complaint(here, "-f", "csv", "-o", out, trace, status=1)
    assert out.read_text() == "mine"
    link.symlink_to(out)
    assert "exists" in complaint(here, "-f", "csv", "-o", link, trace, status=1)
    here.run("export", "-f", "csv", "-o", link, "--force", trace)
    assert out.read_text() == "mine" and not link.is_symlink()
    here.run("export", "-f", "csv", "-o", out, "--force", trace)
    assert out.read_bytes() == expected
    assert "is a folder" in complaint(here, "-f", "csv", "-o", here.folder, "--force", trace,
                                     status=1)
    assert names(here) == ["link.csv", "out.csv", "small.vscope"]


def test_nothing_is_left_of_a_failure(here):
    trace = here.trace("small", SMALL)

    def no_room():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))

    done = subprocess.run([here.program, "export", "-f", "csv", "-o", "out.csv", trace],
                          cwd=here.folder, capture_output=True, timeout=60, preexec_fn=no_room,
                          check=False)
    assert done.returncode == 1 and b"out.csv cannot be written: " in done.stderr, done.stderr
    assert names(here) == ["small.vscope"]
    with open("/dev/full", "wb") as full:
        done = subprocess.run([here.program, "export", "-f", "csv", "-o", "-", trace],
                              stdout=full, stderr=subprocess.PIPE, timeout=60, check=False)
    assert done.returncode == 1 and b"stdout cannot be written: No space left" in done.stderr, done.stderr


def test_what_can_be_read_of_a_damaged_trace(here):
    trace = here.trace("origins")
    whole = trace.read_bytes()
    cut = here.folder / "cut.vscope"
    cut.write_bytes(whole[:-40])
    done = here.run("export", "-f", "csv", "-o", "-", cut, status=1)
    assert b"the rest is missing" in done.stderr
    assert rows(done.stdout) == rows(here.export("csv", trace))[:len(rows(done.stdout))]


lab.main([test for name, test in sorted(globals().items()) if name.startswith("test_")])
