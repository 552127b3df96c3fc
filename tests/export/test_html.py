#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page without a browser: it loads nothing, no name of a trace ends its script, and its
data agree with report and timeline, thinned or not:
test_html.py --vramscope PROGRAM --mktrace PROGRAM."""

import json
import random
import re

import lab

MIB = 1 << 20
KEY_PEAK, KEY_RESERVED, KEY_DEVICE, KEY_OOM, KEY_END = 2, 4, 8, 16, 64
HOSTILE = "</script><script>alert(1)</script><!--<script>&\u2028"

HOSTILE_TRACE = f"""
meta process {{"pid":5,"exe":"/opt/{HOSTILE.replace('/', '_')}"}}
meta clock {{"start":{{"monotonic_ns":1000000000}}}}
device 0 16G {HOSTILE}
code 1 10 {HOSTILE} | /home/u/{HOSTILE}.py
stack 1 py:1:20
phase_begin dev=-1 text={HOSTILE}
alloc dev=0 call=cuMemAlloc_v2 addr=0x700000000 size=6M stack=1
phase_end dev=-1
process_end dev=-1 handle=1
"""


def data_of(page):
    text = page.decode()
    assert len(re.findall(r"(?i)</script", text)) == 3, "a name of the trace ended the script"
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert "<" not in found.group(1) and ">" not in found.group(1)
    return json.loads(found.group(1))


def sums(differences):
    value, out = 0, []
    for difference in differences:
        value += difference
        out.append(value)
    return out


def rows_of(device):
    columns = {name: sums(values) for name, values in device["rows"].items()}
    return [dict(zip(columns, row)) for row in zip(*columns.values())]


def framework_bytes(data, instant):
    live = instant["live"]
    return sum(live[i + 1] for i in range(0, len(live), 3) if data["places"][live[i]][0] == 0)


def check_against_report(here, trace):
    data = data_of(here.export("html", trace))
    report = here.json("report", "--json", trace)
    assert data["trace"]["events"] == report["trace"]["events"]
    devices = {device["index"]: device for device in data["devices"]}
    for told in report["devices"]:
        device = devices.get(told["index"])
        if device is None:
            continue
        assert device["reserved_peak"] == (told["peak"]["reserved_bytes"] or 0), trace
        assert device["device_peak"] == told["peak"]["device_bytes"], trace
        peak = told["peak"]["allocated_bytes"]
        assert device["framework"] is None or device["peak"] == peak, trace
        at_peak = [one for one in data["instants"]
                   if one["device"] == told["index"] and one["reasons"] & KEY_PEAK]
        if device["peak"]:
            held = framework_bytes(data, at_peak[0]) if device["framework"] else at_peak[0]["total"][1]
            assert held == device["peak"], (trace, held, device["peak"])
    ooms = [one for one in data["findings"] if one["kind"] == "oom"]
    assert [one["why"] for one in ooms] == [one["why"] for one in report["ooms"]], trace
    assert [one["at_ns"] for one in ooms] == [one["at_ns"] for one in report["ooms"]], trace
    return data


def same_as_report(here):
    for trace in here.traces():
        check_against_report(here, trace)


def nothing_is_loaded(here):
    text = here.export("html", here.trace("fragmented")).decode()
    addresses = set(re.findall(r"https?:[^\s\"'`)]*", text))
    assert all(one.startswith("http://www.w3.org/") for one in addresses), addresses
    assert not re.search(r"(?i)\b(src|href)\s*=\s*[\"']?(?!data:)[a-z/.]", text.split("<style>")[0])
    assert not re.search(r"\b(fetch|XMLHttpRequest|WebSocket|importScripts)\s*\(", text)
    assert not re.search(r"@import|url\(", text)
    assert "default-src 'none'" in text
    assert re.search(r"d3-zoom \d+\.\d+", text) and "Mike Bostock" in text


def names_are_only_text(here):
    data = data_of(here.export("html", here.trace("hostile", HOSTILE_TRACE)))
    assert any(HOSTILE in text for text in data["strings"]), data["strings"]
    assert HOSTILE in data["phases"][0]["name"]


def long_script(events):
    """Blocks come and go; one event in the middle is by far the highest."""
    draw = random.Random(7)
    lines = ['meta clock {"start":{"monotonic_ns":1000000000}}', "device 0 64G Simulated",
             "alloc t=1000000000 call=cuMemAlloc_v2 addr=0x700000000000 size=32G module=/v/libc10_cuda.so"]
    live, total, time_ns = {}, 0, 1_000_000_000
    for event in range(events):
        time_ns += draw.choice([50, 900, 40_000])
        block = draw.randrange(2000)
        size = 3 << 30 if event == events // 2 else 512 * draw.randrange(1, 400)
        kind = "fw_free" if block in live else "fw_alloc"
        if kind == "fw_alloc":
            live[block] = size
            total += size
        else:
            size = live.pop(block)
            total -= size
        lines.append(f"{kind} t={time_ns} addr={hex(0x700000000000 + block * (8 << 20))} size={size} "
                     f"x0={total} x1=32G stack=0 module=/v/libc10_cuda.so")
    return "\n".join(lines) + "\nprocess_end dev=-1 handle=1\n"


def no_peak_is_hidden(here):
    trace = here.trace("long", long_script(40_000))
    data = data_of(here.export("html", trace))
    device = data["devices"][0]
    rows = rows_of(device)
    told = [row for row in here.json("timeline", "--json", trace)["rows"] if row["device"] == 0]
    assert device["seen"] == len(told) and len(rows) < len(told) / 2, (len(rows), len(told))
    real = {(row["time_ns"], row["live_bytes"], row["reserved_bytes"]) for row in told}
    assert all((row["time"], row["live"], row["reserved"]) in real for row in rows)
    for mine, theirs in (("live", "live_bytes"), ("reserved", "reserved_bytes")):
        assert max(row[mine] for row in rows) == max(row[theirs] for row in told)
        assert rows[0][mine] == told[0][theirs] and rows[-1][mine] == told[-1][theirs]
    # Near every row, no further than one stretch, lie kept rows as high and as low.
    at = {row["time_ns"]: index for index, row in enumerate(told)}
    kept = [(at[row["time"]], row["live"]) for row in rows]
    reach, first, behind = device["stretch_rows"], 0, 0
    for index, row in enumerate(told):
        while behind < len(kept) and kept[behind][0] <= index + reach:
            behind += 1
        while kept[first][0] < index - reach:
            first += 1
        near = [live for _, live in kept[first:behind]]
        assert min(near) <= row["live_bytes"] <= max(near), row


def instants_are_exact(here):
    trace = here.trace("long", long_script(3_000))
    data = data_of(here.export("html", trace))
    live_after = {}
    for row in here.json("timeline", "--json", trace)["rows"]:
        live_after.setdefault(row["time_ns"], []).append(row["live_bytes"])
    assert len(data["instants"]) > 100
    for instant in data["instants"]:
        if not instant["reasons"] & KEY_END:
            # Before the framework's first block what the driver gave is the top layer.
            held = framework_bytes(data, instant) or instant["total"][1]
            assert held in live_after[instant["at_ns"]], instant["at_ns"]
    assert sum(bool(one["reasons"] & KEY_PEAK) for one in data["instants"]) == 1


def segments_are_whole(here):
    data = data_of(here.export("html", here.trace("fragmented")))
    at_oom = [one for one in data["instants"] if one["reasons"] & KEY_OOM][0]
    assert [segment[1] for segment in at_oom["segments"]] == [4 << 30, 4 << 30]
    for address, size, reserved, live, kind, blocks in at_oom["segments"]:
        del address, reserved, kind
        assert sum(blocks[2::5]) == live and sum(blocks[0::5]) + sum(blocks[1::5]) <= size
    assert at_oom["free"] == 4 << 30 and at_oom["largest_free"] == 2 << 30
    told = {reason: [one["at_ns"] for one in data["instants"] if one["reasons"] & reason and "segments" in one]
            for reason in (KEY_PEAK, KEY_RESERVED, KEY_DEVICE)}
    assert told == {KEY_PEAK: [6_000_000], KEY_RESERVED: [5_000_000], KEY_DEVICE: [8_000_000]}, told


def growing_script():
    """A block stays with each of 40 steps, one comes and goes; another stays with the last 12."""
    lines = ['meta clock {"start":{"monotonic_ns":1000000000}}', "device 0 64G Simulated", "code 1 10 stays | /u/a.py",
             "code 2 20 goes | /u/a.py", "code 3 30 late | /u/a.py", "stack 1 py:1:11", "stack 2 py:2:21", "stack 3 py:3:31"]
    alloc = "alloc dev=0 call=cuMemAlloc_v2 module=/x/app"
    for step in range(40):
        lines += [f"step dev=-1 x0={step}", f"{alloc} addr={hex((1 << 40) + (step << 24))} size=1M stack=1",
                  f"{alloc} addr={hex(1 << 41)} size=2M stack=2",
                  f"free dev=0 call=cuMemFree_v2 module=/x/app addr={hex(1 << 41)} size=2M stack=2"]
        if step >= 28:
            lines.append(f"{alloc} addr={hex((1 << 42) + (step << 24))} size=3M stack=3")
    return "\n".join(lines + ["process_end dev=-1 handle=1", ""])


def growth_is_worded_as_in_the_text(here):
    trace = here.trace("growing", growing_script())
    found = [one for one in data_of(here.export("html", trace))["findings"] if one["kind"] == "growth"]
    told = re.findall(r"^  u/a\.py:\d+ .*  (\S+)$", here.run("report", trace).stdout.decode(), re.M)
    words = [one["confidence"] for one in found]
    assert words == ["sure", "likely"], words
    assert [one for one in told if one in ("sure", "likely")] == words, (told, words)


def filters_are_said(here):
    trace = here.trace("fragmented")
    data = data_of(here.export("html", trace, "--from", "5ms", "--to", "9ms"))
    report = here.json("report", "--json", "--from", "5ms", "--to", "9ms", trace)
    assert data["trace"]["filter"].startswith("from 5000000 ns")
    device = data["devices"][0]
    assert device["peak"] == report["devices"][0]["peak"]["allocated_bytes"]
    assert all(5_000_000 <= row["time"] <= 9_000_000 for row in rows_of(device))
    small = data_of(here.export("html", trace, "--min-bytes", "64G"))
    assert all(instant["live"] == [] for instant in small["instants"])
    assert max(instant["total"][1] for instant in small["instants"]) > 0
    refused = here.run("export", "-f", "html", "-o", "-", "--last", "3", trace, status=1)
    assert b"--last" in refused.stderr and refused.stdout == b""


if __name__ == "__main__":
    lab.main([same_as_report, nothing_is_loaded, names_are_only_text, no_peak_is_hidden,
              instants_are_exact, segments_are_whole, growth_is_worded_as_in_the_text, filters_are_said])
