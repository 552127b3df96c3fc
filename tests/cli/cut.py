#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A trace that is too large for its archive is cut: peaks, live sets, verdicts and failures
are those of the whole one, every command says what is cut, and none takes it for lost.

usage: cut.py --vramscope PATH --mktrace PATH
"""
import argparse
import csv
import io
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import zipfile

from damage import Checker

MIB = 1 << 20
TORCH, APP = "/v/torch/lib/libc10_cuda.so", "/usr/bin/app"
TABLES = ["code 1 10 step | /home/u/train.py", "code 2 20 forward | /home/u/model.py"]
STACKS, START_NS = 30, 1000000000
FORMATS = ("csv", "json", "folded", "pprof", "pytorch", "html", "sqlite")


class Program:
    """Random blocks in segments, kept in step with the totals that a framework tells."""

    def __init__(self, seed, devices, vmm=False, pool=False):
        self.random = random.Random(seed)
        self.lines = ['meta process {"pid":9,"exe":"/usr/bin/python3","host":"magrathea-17"}',
                      'meta clock {"start":{"monotonic_ns":%d}}' % START_NS]
        self.lines += [f"device {device} 16G Test GPU" for device in range(devices)] + TABLES
        self.lines += [f"stack {1 + i} py:2:{20 + i} entry:1:{10 + i % 3}" for i in range(STACKS)]
        self.allocated, self.reserved, self.live = [0] * devices, [0] * devices, [{} for _ in range(devices)]
        self.segments = [[] for _ in range(devices)]
        self.events, self.pool = 0, pool
        for device in range(devices):
            for i in range(6):
                self.segment(device, vmm and i % 2 == 1)

    def put(self, kind, device=0, **fields):
        fields.setdefault("module", TORCH)
        fields.setdefault("call", "cudaMalloc")
        fields.setdefault("stack", self.random.randrange(1, STACKS + 1))
        fields.setdefault("thread", 7 + self.random.randrange(2))
        self.lines.append(f"{kind} dev={device} " + " ".join(f"{name}={value}" for name, value in fields.items()))
        self.events += 1

    def segment(self, device, vmm):
        address = 0x700000000000 + (device << 40) + (len(self.segments[device]) << 30)
        size = 256 * MIB
        self.segments[device].append(address)
        self.reserved[device] += size
        if vmm:
            handle = 1 + self.events
            self.put("reserve", device, addr=hex(address), size="1G", call="cuMemAddressReserve")
            self.put("phys_create", device, handle=handle, size=size, x0=1, call="cuMemCreate")
            self.put("map", device, addr=hex(address), size=size, handle=handle, call="cuMemMap")
        else:
            self.put("alloc", device, addr=hex(address), size=size)

    def block(self, device, kind, address, size):
        self.allocated[device] += size if kind == "fw_alloc" else -size
        self.put(kind, device, addr=hex(address), size=size, x0=self.allocated[device], x1=self.reserved[device])

    def churn(self, events, most=40):
        end = self.events + events
        while self.events < end:
            device = self.random.randrange(len(self.live))
            live = self.live[device]
            address = self.random.choice(self.segments[device]) + 4 * MIB * self.random.randrange(64)
            if address in live:
                self.block(device, "fw_free", address, live.pop(address))
            elif len(live) < most:
                live[address] = 512 * self.random.randrange(1, 4096)
                self.block(device, "fw_alloc", address, live[address])
            if self.pool and self.events % 100 == 0:
                self.put("pool_alloc", 0, module=APP, addr=hex(0x600000000000 + self.events), size=4096, pool=5,
                         x0="32M", x1=4096, call="cuMemAllocAsync")

    def out_of_memory(self, device):
        size = 15 << 30
        self.put("alloc", device, size=size, free="300M", res=2, thread=7)
        self.put("fw_oom", device, size=size, x0=self.allocated[device], x1=self.reserved[device], thread=7)

    def end(self, code):
        self.lines.append(f'meta end {{"ended":"exit","exit_code":{code},"complete":true}}')
        self.put("process_end", -1, handle=1, x0=code)


def failed():
    """Two devices, expandable segments, a pool, a call that failed, the peak, and an out of memory."""
    program = Program(1, 2, vmm=True, pool=True)
    program.churn(5000)
    program.put("ipc_get", 0, addr="0x700000000000", res=1, module=APP, call="cudaIpcGetMemHandle")
    program.churn(4000)
    program.churn(300, most=90)
    program.churn(4000)
    program.out_of_memory(1)
    program.churn(2500)
    program.end(1)
    return program


def early():
    """The peak at the very beginning, and nothing at the end."""
    program = Program(2, 1)
    program.churn(200, most=60)
    program.churn(12000, most=20)
    program.end(0)
    return program


def late():
    """The peak at the very end."""
    program = Program(3, 1, vmm=True)
    program.churn(12000, most=20)
    program.churn(100, most=90)
    program.end(0)
    return program


def lossy():
    program = Program(4, 1)
    for _ in range(6):
        program.churn(2000)
        program.put("loss", 0, label="fw_free", x0=2, size=1 * MIB)
        program.allocated[0] -= 512
    program.churn(100, most=90)
    program.lines.append("incomplete")
    return program


PROGRAMS = (failed, early, late, lossy)


def get(checker, *words):
    done = checker.run(words[0], list(words))
    if done.returncode != 0:
        checker.fail("status 0", words, done)
    return done.stdout


def pack(checker, trace, out, share):
    """Cuts the trace to `share` of its size; what is in the archive."""
    checker.run("pack", ["pack", "--yes", "--force", "-o", out, trace])
    with zipfile.ZipFile(out) as archive:
        sizes = {info.filename: info.compress_size for info in archive.infolist()}
    others = sum(size for name, size in sizes.items() if name not in ("trace.vscope", "report.html"))
    limit = int(others + 10000 + sizes["trace.vscope"] * share)
    done = checker.run("pack", ["pack", "--yes", "--force", "--limit", str(limit), "-o", out, trace])
    with zipfile.ZipFile(out) as archive:
        found = {name: archive.read(name) for name in archive.namelist()}
    if "trace.vscope" not in found or "cut: trace.vscope" not in done.stdout or out.stat().st_size > limit:
        checker.fail("the trace is in, cut, and said to be", ["pack", "--limit", limit, trace], done)
        return None
    return found


def site_figures(report):
    """What each site held and failed to get; how often it was asked is not known in a gap."""
    # What has no frames is numbered behind the last stack of the file.
    return sorted(((site["stack"] if site["frames"] else 0) or 0, site["layer"], site["owner"], site["peak_bytes"], site["end_bytes"],
                   site["failed"], json.dumps(site["frames"]))
                  for site in report["sites"] if site["peak_bytes"] or site["end_bytes"] or site["failed"])


def check_figures(checker, name, whole, cut):
    for key in ("ooms", "failures", "process", "objects", "slow_calls"):
        if whole[key] != cut[key]:
            checker.failed += 1
            print(f"FAILED {name}: {key} differ: {whole[key]} {cut[key]}")
    for before, after in zip(whole["devices"], cut["devices"]):
        for key in before:
            told = before[key]
            if key == "peak":  # what came and went around it is not known in a cut trace
                told = told | {"recent": None, "near": None, "step_ends": None}
            if told != after[key] and key not in ("framework", "categories"):
                checker.failed += 1
                print(f"FAILED {name}: {key} differ: {told} {after[key]}")
    if site_figures(whole) != site_figures(cut):
        checker.failed += 1
        print(f"FAILED {name}: what was live by stack differs")
    if name == "failed" and not (whole["ooms"] and whole["failures"]):
        checker.failed += 1
        print("FAILED: the program that fails does")
    if cut["growth"] or cut["phases"]:
        checker.failed += 1
        print(f"FAILED {name}: growth and phases are judged in a cut trace")


def check_said(checker, name, out, found):
    """Every reader tells of the gaps, and the curves do not go through them."""
    report = json.loads(get(checker, "report", "--json", out))
    cut = report["trace"]["cut"]
    beside = json.loads(found["report.json"])["trace_beside_cut"]
    text = get(checker, "report", out)
    dump = [line for line in get(checker, "dump", out).splitlines() if " cut: " in line]
    verify = get(checker, "verify", out)
    rows = list(csv.DictReader(io.StringIO(get(checker, "timeline", "--csv", out))))
    holes = [row for row in rows if row["allocated_bytes"] == ""]
    inside = [row for row in rows for gap in cut["gaps"]
              if gap["from_ns"] < int(row["time_ns"]) < gap["to_ns"] and row["allocated_bytes"] != ""]
    devices = len(report["devices"])
    good = (cut == beside and cut["events"] == sum(gap["events"] for gap in cut["gaps"]) > 0
            and len(dump) == len(cut["gaps"]) == cut["gap_count"] and len(holes) == devices * len(dump)
            and not inside and "\nCut: " in text and f"{cut['gaps'][0]['events']} events between" in text
            and "Beside:" in found["report.txt"].decode() and "Beside:" in found["report.md"].decode()
            and sum("OFF" in line for line in verify.splitlines()) == 0
            and any(line.startswith("note  cut ") for line in verify.splitlines())
            and "are held" in get(checker, "timeline", "--plot", out))
    if not good:
        checker.failed += 1
        print(f"FAILED {name}: what is cut is said: {cut} {beside} {dump} {len(holes)} {len(inside)}\n{verify}{text[:800]}")


def check_exports(checker, name, whole, out, folder):
    for form in FORMATS:
        get(checker, "export", "--force", "-f", form, "-o", folder / "export", out)
    gap = json.loads(get(checker, "report", "--json", out))["trace"]["cut"]["gaps"][0]
    inside = (gap["from_ns"] + gap["to_ns"]) // 2
    done = checker.run("in a gap", ["export", "-f", "folded", "--at", f"{inside}ns", "-o", "-", out])
    if done.returncode != 1 or "is not known" not in done.stderr:
        checker.fail("what is live in a gap is not told", ["export", "--at", inside, out], done)
    page = (folder / "export").with_suffix(".page")
    get(checker, "export", "-f", "html", "-o", page, out)
    if "of a cut trace, without" not in page.read_text(encoding="utf-8"):
        checker.failed += 1
        print(f"FAILED {name}: the page says that it is of a cut trace")
    peaks = [get(checker, "export", "-f", "folded", "-o", "-", path).splitlines() for path in (whole, out)]
    stacks = [sorted(line for line in lines if not line.startswith("#")) for lines in peaks]
    if stacks[0] != stacks[1] or not stacks[0]:
        checker.failed += 1
        print(f"FAILED {name}: what is live at the peak, as flame graph")


def check_again(checker, name, out, folder):
    """A cut trace stays one when it is copied, and when it is cut again says all that is cut."""
    copy, again = folder / "copy.vscope", folder / "again.zip"
    get(checker, "redact", "--force", "-o", copy, out)
    if json.loads(get(checker, "report", "--json", copy))["trace"]["cut"]["events"] == 0:
        checker.failed += 1
        print(f"FAILED {name}: a copy of a cut trace is one")
    get(checker, "verify", copy)
    done = checker.run("pack of a pack", ["pack", "--yes", "--force", "--from", "0", "--to", "1ms", "-o", again, out])
    before, after = (json.loads(get(checker, "report", "--json", path)) for path in (out, again))
    events = [report["trace"]["cut"]["events"] for report in (before, after)]
    with zipfile.ZipFile(again) as archive:
        beside = json.loads(archive.read("report.json"))["trace_beside_cut"]["events"]
    if not events[1] > events[0] or beside != events[1] - events[0] or done.returncode != 0:
        checker.fail(f"{name}: cut again {events}, {beside} of it now", ["pack", out], done)
    get(checker, "verify", again)
    check_figures(checker, name, before, after)


def events_within(checker, path, window):
    """What the trace has of a window, and how many events besides; without where they stand in the file."""
    inside, outside = [], 0
    for line in get(checker, "dump", "--json", path).splitlines():
        event = json.loads(line)
        if event["kind"] in ("cut", "cut_end"):
            continue
        event.pop("index", None)
        event.pop("stack", None)
        if window[0] <= event["time_ns"] - START_NS <= window[1]:
            inside.append(event)
        else:
            outside += 1
    return inside, outside


def check_chosen(checker, name, trace, whole, out):
    """A window that somebody chose is there with every event, and what matters besides as ever."""
    duration = json.loads(get(checker, "report", "--json", whole))["trace"]["duration_ns"]
    window = (duration // 3, duration // 3 + duration // 20)
    bounds = ["--from", f"{window[0]}ns", "--to", f"{window[1]}ns"]
    done = checker.run("pack of a window", ["pack", "--yes", "--force", *bounds, "-o", out, trace])
    before, besides = events_within(checker, whole, window)
    after, left = events_within(checker, out, window)
    if before != after or not before or not 0 < left < besides / 2 or "because of --from and --to" not in done.stdout:
        checker.fail(f"{name}: the window that was chosen, {len(before)} events and {len(after)}, and {left} of "
                     f"{besides} besides", ["pack", *bounds, trace], done)
    check_figures(checker, name, json.loads(get(checker, "report", "--json", whole)),
                  json.loads(get(checker, "report", "--json", out)))
    done = checker.run("all of it", ["pack", "--yes", "--force", "--from", "0", "-o", out, trace])
    if "\ncut: " in done.stdout or events_within(checker, out, window) != (before, besides):
        checker.fail(f"{name}: nothing is cut where all was chosen", ["pack", "--from", "0", trace], done)
    for bounds in (["--from", "5ms", "--to", "1ms"], ["--from", "90", "--to", "95"], ["--from", "90"]):
        done = checker.run("no window", ["pack", "--yes", "--force", *bounds, "-o", out, trace])
        if done.returncode != 1 or "leave nothing of the run, which took 1" not in done.stderr:
            checker.fail(f"{name}: a window with nothing in it", ["pack", *bounds, trace], done)


def check_program(checker, make, folder, mktrace):
    name = make.__name__
    script, trace, whole, out = (folder / f"{name}{suffix}" for suffix in (".txt", ".vscope", ".shown", ".zip"))
    script.write_text("\n".join(make().lines) + "\n")
    subprocess.run([mktrace, script, trace], check=True)
    get(checker, "redact", "--force", "-o", whole, trace)
    found = pack(checker, trace, out, 0.4)
    if found is None:
        return
    check_figures(checker, name, json.loads(get(checker, "report", "--json", whole)),
                  json.loads(get(checker, "report", "--json", out)))
    check_said(checker, name, out, found)
    check_chosen(checker, name, trace, whole, folder / "chosen.zip")
    if make is failed:
        check_exports(checker, name, whole, out, folder)
        check_again(checker, name, out, folder)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vramscope", required=True, type=pathlib.Path)
    parser.add_argument("--mktrace", required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    checker = Checker(arguments.vramscope.resolve())
    with tempfile.TemporaryDirectory(prefix="vramscope-cut-") as name:
        for make in PROGRAMS:
            check_program(checker, make, pathlib.Path(name), arguments.mktrace)
    print(f"{checker.runs} runs, {checker.failed} failed")
    return 1 if checker.failed else 0


sys.exit(main())
