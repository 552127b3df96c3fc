#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random programs with known books: a caching allocator over direct and expandable
segments, libraries beside it, host memory, each block with a stack. The report must
agree with the books to the byte, in all of the run and in windows of it; verify must be
silent; sites, lines, functions, modules and stacks must sum up to the peak.

usage: identities.py --vramscope PATH --mktrace PATH [--seeds N]
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

MIB = 1 << 20
GIB = 1 << 30
MS = 1_000_000
PLACES = 12  # different stacks; ids 2n + 1 and 2n + 2 mean the same frames
TORCH = "/v/torch/lib/libc10_cuda.so"
NCCL = "/v/nccl/libnccl.so.2"


class Device:
    def __init__(self, index):
        self.index = index
        self.segments = {}  # start -> (size, handle or None)
        self.holes = []  # (address, size) free for blocks
        self.blocks = {}  # address -> size
        self.direct = {}  # address -> (size, module)
        self.allocated = self.reserved = self.max_allocated = self.max_reserved = 0
        self.places = {}  # address -> place of the block
        self.history = []  # (event, allocated, {place: bytes}) after each event of a block

    def lived(self, event):
        held = {}
        for address, size in self.blocks.items():
            place = self.places[address]
            held[place] = held.get(place, 0) + size
        self.history.append((event, self.allocated, held))


class Program:
    """Makes the script and keeps the books."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines = []
        self.devices = [Device(index) for index in range(1 + seed % 2)]
        self.next_address = 0x700000000000
        self.next_handle = 1
        self.pinned = {}
        self.events = self.count = 0

    def say(self, kind, **fields):
        self.count += 1
        self.lines.append(" ".join([kind] + [f"{name}={value}" for name, value in fields.items()]))

    def address(self, size):
        at = self.next_address
        self.next_address += (size + 2 * MIB - 1) // (2 * MIB) * (2 * MIB) * self.random.choice([1, 1, 2])
        return at

    def grow(self, device):
        size = self.random.choice([2, 20, 64]) * MIB
        at = self.address(size)
        if self.random.random() < 0.5:
            handle, self.next_handle = self.next_handle, self.next_handle + 1
            self.say("reserve", dev=device.index, addr=at, size=size, call="cuMemAddressReserve", module=TORCH)
            self.say("phys_create", dev=device.index, handle=handle, size=size, x0=1, call="cuMemCreate",
                     module=TORCH)
            self.say("map", dev=device.index, addr=at, size=size, handle=handle, call="cuMemMap", module=TORCH)
            device.segments[at] = (size, handle)
        else:
            self.say("alloc", dev=device.index, addr=at, size=size, label="cudaMalloc", call="cuMemAlloc_v2",
                     module=TORCH)
            device.segments[at] = (size, None)
        device.holes.append((at, size))
        device.reserved += size
        device.max_reserved = max(device.max_reserved, device.reserved)

    def take(self, device):
        size = 512 * self.random.randint(1, 4000)
        fitting = [hole for hole in device.holes if hole[1] >= size]
        if not fitting:
            self.grow(device)
            fitting = [device.holes[-1]] if device.holes[-1][1] >= size else []
        if not fitting:
            return
        at, room = self.random.choice(fitting)
        device.holes.remove((at, room))
        if room > size:
            device.holes.append((at + size, room - size))
        device.blocks[at] = size
        place = device.places[at] = self.random.randrange(PLACES)
        device.allocated += size
        device.max_allocated = max(device.max_allocated, device.allocated)
        self.report(device, "fw_alloc", at, size, stack=2 * place + self.random.choice([1, 2]))

    def give(self, device):
        if not device.blocks:
            return
        at = self.random.choice(list(device.blocks))
        size = device.blocks.pop(at)
        device.allocated -= size
        device.holes.append((at, size))
        self.report(device, "fw_free", at, size)

    def report(self, device, kind, at, size, **fields):
        self.events += 1
        self.say(kind, dev=device.index, addr=at, size=size, x0=device.allocated, x1=device.reserved,
                 module=TORCH, **fields)
        device.lived(self.count - 1)

    def empty(self, device):
        for at, (size, handle) in list(device.segments.items()):
            if any(at <= block < at + size for block in device.blocks):
                continue
            if handle is None:
                self.say("free", dev=device.index, addr=at, flags="intent", call="cuMemFree_v2", module=TORCH)
            else:
                self.say("unmap", dev=device.index, addr=at, size=size, flags="intent", module=TORCH)
                self.say("phys_release", dev=device.index, handle=handle, flags="intent", module=TORCH)
                self.say("unreserve", dev=device.index, addr=at, size=size, flags="intent", module=TORCH)
            device.holes = [hole for hole in device.holes if not at <= hole[0] < at + size]
            del device.segments[at]
            device.reserved -= size

    def beside(self, device):
        if device.direct and self.random.random() < 0.5:
            at = self.random.choice(list(device.direct))
            del device.direct[at]
            self.say("free", dev=device.index, addr=at, flags="intent", call="cuMemFree_v2", module=NCCL)
            return
        size = self.random.choice([4096, 3 * MIB, 10 * MIB])
        at = self.address(size)
        device.direct[at] = size
        self.say("alloc", dev=device.index, addr=at, size=size, call="cuMemAlloc_v2", module=NCCL)

    def pin(self):
        if self.pinned and self.random.random() < 0.4:
            at = self.random.choice(list(self.pinned))
            del self.pinned[at]
            self.say("host_free", addr=at, flags="intent", call="cuMemFreeHost")
            return
        size = self.random.randint(1, 100000)
        at = self.address(size)
        self.pinned[at] = size
        self.say("host_alloc", addr=at, size=size, call="cuMemHostAlloc")

    def define_stacks(self):
        """Three lines of each of two functions, reached in two ways; each stack has two ids."""
        for code, name in enumerate(("model.forward", "optimizer.step", "main"), 1):
            self.lines.append(f"code {code} 1 {name} | /home/ann/run/{name}.py")
        for generation in range(2):
            for place in range(PLACES):
                code, line, caller = 1 + place % 2, 10 + place % 6, 1 + place // 6
                self.lines.append(f"stack {2 * place + 1 + generation} {TORCH}+0x{place % 3}00 py:{code}:{line} "
                                  f"entry:3:{caller}")
            self.lines.append(f"module {TORCH}")

    def run(self, steps):
        self.lines.append('meta end {"ended":"exit","exit_code":0,"complete":true}')
        for device in self.devices:
            self.lines.append(f"device {device.index} 80G Test GPU")
        self.define_stacks()
        for _ in range(steps):
            device = self.random.choice(self.devices)
            action = self.random.choices([self.take, self.give, self.beside, self.empty],
                                         weights=[10, 8, 1, 0.3])[0]
            action(device)
            if self.random.random() < 0.05:
                self.pin()
            if self.random.random() < 0.02:
                self.lines.append("flush")
        self.say("process_end", dev=-1, handle=1)


def line_of(place):
    return place % 2, 10 + place % 6


def by_line(held):
    lines = {}
    for place, size in held.items():
        lines[line_of(place)] = lines.get(line_of(place), 0) + size
    return {line: size for line, size in lines.items() if size}


def stretch(device, first, last):
    """(peak, lines at the peak, lines at the end) of the events first … last, by the books."""
    before = [entry for entry in device.history if entry[0] < first]
    within = [entry for entry in device.history if first <= entry[0] <= last]
    peak = before[-1] if before else (0, 0, {})
    end = within[-1] if within else peak
    for entry in within:
        if entry[1] > peak[1]:
            peak = entry
    return peak[1], by_line(peak[2]), by_line(end[2])


def lines_of(report, device, field):
    lines = {}
    for group in report["groups"]:
        if group["device"] == device and group["layer"] == "framework" and group[field]:
            lines[(0 if group["function"] == "model.forward" else 1, group["line"])] = group[field]
    return lines


def check_places(program, read):
    """Lines at the peak and at the end, in all of the run and in windows of it; sums in every grouping."""
    wrong = []
    last = program.count - 1
    windows = [(0, last)] + [tuple(sorted(program.random.sample(range(last), 2))) for _ in range(3)]
    for first, end in windows:
        window = ["--from", f"{first * MS}ns", "--to", f"{end * MS}ns"] if (first, end) != (0, last) else []
        reports = {by: read("--by", by, *window) for by in ("line", "function", "module", "stack")}
        short = read("--by", "line", "--top", "3", "--min-bytes", "1M", *window)
        for device in program.devices:
            peak, at_peak, at_end = stretch(device, first, end)
            if not device.history:
                continue
            ours = next(found for found in reports["line"]["devices"] if found["index"] == device.index)
            figures = {"peak": (ours["peak"]["allocated_bytes"], peak),
                       "lines at the peak": (lines_of(reports["line"], device.index, "peak_bytes"), at_peak),
                       "lines at the end": (lines_of(reports["line"], device.index, "end_bytes"), at_end)}
            for by, report in list(reports.items()) + [("top", short)]:
                for what in ("groups", "sites"):
                    held = [entry for entry in report[what]
                            if entry["device"] == device.index and entry["layer"] == "framework"]
                    figures[f"{what} by {by}"] = (sum(entry["peak_bytes"] for entry in held), peak)
                    figures[f"{what} by {by} at the end"] = (sum(entry["end_bytes"] for entry in held),
                                                             sum(at_end.values()))
            stacks = [site["stack"] for site in reports["stack"]["sites"]
                      if site["device"] == device.index and site["layer"] == "framework"]
            figures["each stack once"] = (len(stacks), len({(stack - 1) // 2 for stack in stacks}))
            wrong += [f"{first} … {end}: {what}: {got}, the books say {books}"
                      for what, (got, books) in figures.items() if got != books]
    return wrong


def compare(program, report):
    wrong = []

    def equal(what, ours, books):
        if ours != books:
            wrong.append(f"{what}: {ours}, the books say {books}")

    equal("framework events", report["hooks"]["framework_events"], program.events)
    for device in program.devices:
        ours = next(found for found in report["devices"] if found["index"] == device.index)
        end, peak = ours["end"], ours["peak"]
        equal("allocated", end["allocated_bytes"], device.allocated)
        equal("reserved", end["reserved_bytes"], device.reserved)
        equal("backed", end["backed_bytes"], device.reserved)
        equal("max allocated", peak["allocated_bytes"], device.max_allocated)
        equal("max reserved", peak["reserved_bytes"], device.max_reserved)
        equal("mismatches", ours["framework"]["mismatches"], 0)
        equal("libnccl", end["by_owner"].get("libnccl", 0), sum(device.direct.values()))
        equal("pinned", end["host_pinned_requested_bytes"], sum(program.pinned.values()))
        equal("owners", sum(end["by_owner"].values()), end["direct_bytes"])
        if device.segments:
            equal("free in segments", ours["fragmentation"]["free_in_segments_bytes"],
                  device.reserved - device.allocated)
        sites = [site for site in report["sites"] if site["device"] == device.index]
        for layer, expected in (("framework", device.max_allocated),):
            if device.max_allocated:
                equal("sites at the peak", sum(site["peak_bytes"] for site in sites if site["layer"] == layer),
                      expected)
    return wrong


def check_timeline(text, program):
    """The highest allocated of the curve is the peak; the last row is the end."""
    rows = [line.split(",") for line in text.splitlines()]
    header, rows = rows[0], rows[1:]
    wrong = []
    for device in program.devices:
        own = [dict(zip(header, row)) for row in rows if row[1] == str(device.index)]
        if not own:
            continue
        most = max(int(row["allocated_bytes"]) for row in own)
        if most != device.max_allocated or int(own[-1]["reserved_bytes"]) != device.reserved:
            wrong.append(f"timeline of device {device.index}: {most}, the books say {device.max_allocated}")
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vramscope", required=True, type=pathlib.Path)
    parser.add_argument("--mktrace", required=True, type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--steps", type=int, default=400)
    arguments = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory(prefix="vramscope-books-") as name:
        script, trace = pathlib.Path(name) / "script", pathlib.Path(name) / "books.vscope"
        for seed in range(arguments.seeds):
            program = Program(seed)
            program.run(arguments.steps)
            script.write_text("\n".join(program.lines) + "\n")
            subprocess.run([arguments.mktrace, script, trace], check=True)

            def vramscope(*words):
                return subprocess.run([arguments.vramscope, *words, trace], stdout=subprocess.PIPE, text=True,
                                      check=False, timeout=60)

            def read(*words):
                return json.loads(vramscope("report", "--json", *words).stdout)

            wrong = compare(program, read())
            wrong += check_places(program, read)
            wrong += check_timeline(vramscope("timeline", "--csv").stdout, program)
            verify = vramscope("verify")
            if verify.returncode != 0:
                wrong.append("verify:\n" + verify.stdout)
            for line in wrong:
                print(f"seed {seed}: {line}")
            failed += bool(wrong)
    print(f"{arguments.seeds} programs, {failed} differ from their books")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
