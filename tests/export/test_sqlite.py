#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sqlite, read by Python's own module, against dump, timeline and report:
test_sqlite.py --vramscope PROGRAM --mktrace PROGRAM."""

import csv
import json
import sqlite3

import lab


def open_export(here, trace, *options):
    out = trace.with_suffix(".sqlite")
    here.run("export", "-f", "sqlite", "-o", out, "--force", *options, trace)
    database = sqlite3.connect(out)
    database.row_factory = sqlite3.Row
    assert database.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    return database


def table(database, name):
    return [dict(row) for row in database.execute(f"SELECT * FROM {name} ORDER BY 1, 2")]


def test_events_and_frames_are_the_dump(here):
    for trace in here.traces():
        database = open_export(here, trace)
        start = int(dict(database.execute("SELECT name, value FROM trace"))["start_ns"])
        lines = here.lines("dump", "--json", "--stacks", trace)
        expected = [line for line in lines if "sequence" in line]
        got = [dict(row) for row in database.execute("SELECT * FROM event ORDER BY rowid")]
        assert len(got) == len(expected)
        for row, event in zip(got, expected):
            assert row.pop("time_ns") + start == event.pop("time_ns")
            assert bin(row.pop("flags")).count("1") == len(event.pop("flags", []))
            zeros = {"free_bytes": None, "device": None}
            for name, value in row.items():
                value = value + (1 << 64) if isinstance(value, int) and value < -(1 << 40) else value
                assert value == event.get(name, zeros.get(name, 0 if value == 0 else None)), (
                    name, row, event)
            assert set(event) <= set(row)
        for line in lines:
            if "frames" not in line:
                continue
            frames = table(database, f"(SELECT position, * FROM frame WHERE stack={line['stack']})")
            assert len(frames) == len(line["frames"])
            for row, frame in zip(frames, line["frames"]):
                assert row["function"] == frame.get("function", frame.get("text"))
                for name in ("kind", "file", "line", "module", "address"):
                    assert row[name] == frame.get(name), (row, frame)


def test_sites_are_the_reports(here):
    names = ("allocs", "frees", "failed", "bytes", "peak_bytes", "peak_count", "end_bytes",
             "end_count", "layer")
    some = 0
    for trace in here.traces():
        sites = table(open_export(here, trace), "site")
        report = here.json("report", "--json", trace)["sites"]
        known = sorted(tuple(site[name] for name in names) for site in report)
        got = sorted(tuple(site[name] for name in names) for site in sites)
        # The report leaves out sites that neither asked for nor held anything.
        assert [site for site in got if any(site[:-1])] == [
            site for site in known if any(site[:-1])], trace
        some += len(known)
    assert some > 10


def test_samples_are_the_timeline(here):
    for trace in here.traces():
        got = [dict(row) for row in
               open_export(here, trace).execute("SELECT * FROM sample ORDER BY rowid")]
        text = here.run("timeline", "--csv", trace).stdout.decode().splitlines()
        assert [{name: "" if value is None else str(value) for name, value in row.items()}
                for row in got] == list(csv.DictReader(text)), trace


def test_filters_and_stdout(here):
    trace = here.trace("fragmented")
    database = open_export(here, trace, "--last", "2", "--min-bytes", "2G")
    assert database.execute("SELECT count(*) FROM event").fetchone()[0] == 2
    facts = dict(database.execute("SELECT name, value FROM trace"))
    assert json.loads(facts["filter"]) == {"last": 2, "min_bytes": 2 << 30}
    out = here.folder / "piped.sqlite"
    out.write_bytes(here.export("sqlite", trace))
    assert sqlite3.connect(out).execute("SELECT count(*) FROM event").fetchone()[0] > 10


lab.main([test for name, test in sorted(globals().items()) if name.startswith("test_")])
