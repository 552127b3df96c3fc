#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads a .vscope trace by docs/format.md alone, with no code of this project: shows
that the document is enough. Prints the lines that trace-dump prints. reader.py FILE"""
import itertools
import json
import struct
import sys

import xxhash
import zstandard

M64, UNZIGZAG = (1 << 64) - 1, lambda v: v >> 1 ^ -(v & 1)
EVENTS, STRINGS, THREADS, MODULES, DEVICES, STACKS, META, KEYFRAME = 0x8001, 2, 3, 4, 5, 6, 7, 8
CODES, SYMBOLS, CUT, ROOM, END = 9, 10, 0x800B, 14, 15
SHAPES = {STRINGS: (1, 1), THREADS: (1, 1), MODULES: (5, 2), DEVICES: (3, 4), STACKS: (2, 0), CODES: (2, 2),
          SYMBOLS: (5, 2), META: (0, 2)}


def sealed(block):
    return len(block) == 64 and xxhash.xxh64_intdigest(block[:56]) == struct.unpack("<Q", block[56:])[0]


def header_at(data, at, tag):
    block = data[at:at + 64]
    if block[:4] != b"VSCK" or not sealed(block):
        return None
    _, kind, flags, stored, raw, number, first, mark, count, own, digest = struct.unpack("<4sHHIIQQQIIQ", block[:56])
    if tag != own or kind != ROOM and max(stored, raw) > 64 << 20 or count > 1 << 18:
        return None
    return dict(kind=kind, flags=flags, stored=stored, raw=raw, number=number, first=first, mark=mark, count=count, digest=digest,
                next=at + (64 + stored + 63) // 64 * 64)


def walk(data, at, end, tag, slot):
    """The sound chunks of one region."""
    number = -1
    while at + 64 <= end:
        head = header_at(data, at, tag)
        fits = head and head["stored"] <= end - at - 64
        body = data[at + 64:at + 64 + head["stored"]] if fits else b""
        if fits and (head["kind"] == ROOM or xxhash.xxh64_intdigest(body) == head["digest"]):
            if slot and head["number"] < number:
                return
            number, at = head["number"], head["next"]
            yield dict(head, body=body)
        elif slot and not fits and (number >= 0 or not any(data[at:at + 64])):
            return
        else:
            at = next((i for i in range(at + 64, end - 63, 64) if header_at(data, i, tag)), end)


def varints(data):
    value = shift = 0
    for byte in data:
        value, shift = value | (byte & 127) << shift, shift + 7
        if byte < 128:
            yield value
            value = shift = 0


def decoded(coding, data):
    numbers, out, rest = list(varints(data)), [], iter(data)
    if coding == 5:
        unit, count, *numbers = numbers
        literals = itertools.accumulate(map(UNZIGZAG, numbers[:count]))
        for back in numbers[count:]:
            out.append(out[-back] if back else next(literals) * unit & M64)
    elif coding in (6, 7):
        count, unit, base = itertools.islice(varints(rest), 3)
        leads, low = [next(rest) for _ in range(count)], int.from_bytes(bytes(rest), "little")
        for lead in leads:
            bits = max(lead // 2 - 1, 0)
            value, low = (2 | lead & 1) << bits | low & (1 << bits) - 1 if lead > 3 else lead, low >> bits
            out.append(value * unit + UNZIGZAG(base) & M64)
    else:
        out = [v for run, v in zip(numbers[::2], numbers[1::2]) for _ in range(run)] if coding in (3, 4) else numbers
    deltas = map(UNZIGZAG, out) if coding in (2, 4) else out if coding == 7 else None
    return [v & M64 for v in itertools.accumulate(deltas)] if deltas else out


def columns(payload):
    """{id: values or bytes} of a payload; of columns in coding 8 under -id."""
    out, rest = {}, iter(payload)
    for ident in varints(rest):
        coding = next(rest)
        data = bytes(next(rest) for _ in range(next(varints(rest))))
        nested = coding == 8
        out[-ident if nested else ident] = data if coding == 0 else decoded(data[0] if nested else coding, data[nested:])
    return out


def events_of(cols, count):
    rows = [cols.get(i, [0] * count) for i in range(1, 23)]
    for ident in (i for i in (12, 13) if -i in cols):  # a framework's totals
        rows[ident - 1], last = list(map(UNZIGZAG, cols[-ident])), {}
        for i, (kind, size, device) in enumerate(zip(rows[4], rows[6], rows[20])):
            if kind in (80, 81, 82):
                change = (size, -size, 0)[kind - 80] * (ident == 12)
                rows[ident - 1][i] = last[device] = last.get(device, 0) + change + rows[ident - 1][i]
        rows[ident - 1] = [v & M64 for v in rows[ident - 1]]
    rows[13] = [v - 1 & M64 for v in rows[13]]  # free_bytes
    rows[15] = map(UNZIGZAG, rows[15])  # result
    rows[20] = [((v - 1 & 255) ^ 128) - 128 for v in rows[20]]  # device
    return list(zip(*rows))


def rows_of(kind, cols, count):
    """[numbers…, texts…, words] of each row."""
    numbers, texts = SHAPES[kind]
    lists = [(16 + 2 * i, cols.get(17 + 2 * i, b"")) for i in range(texts)] + [(32, cols.get(33, []))] * (kind == STACKS)
    ends = dict.fromkeys((i for i, _ in lists), 0)
    for row in range(count):
        out = [cols.get(1 + i, [0] * count)[row] for i in range(numbers)]
        for ident, values in lists:
            start, ends[ident] = ends[ident], ends[ident] + cols.get(ident, [0] * count)[row]
            out.append(values[start:ends[ident]])
        yield out


def main(path):
    data = open(path, "rb").read()
    magic, version, flags, ident, superblock = struct.unpack("<8sII16sQ", data[:40])
    if magic != b"\x89VSCOPE\n" or not sealed(data[:64]) or version != 1:
        sys.exit("not a trace of version 1")
    tag, regions = struct.unpack("<I", ident[:4])[0], [(64, len(data))]
    if flags & 1:
        start, size, slots = struct.unpack("<QQQ", data[superblock + 8:superblock + 32])
        ends = [min(start + i * size, len(data)) for i in range(slots + 1)]
        regions = [(superblock + 64, start)] + list(zip(ends, ends[1:]))
    chunks = sorted((c for r in regions for c in walk(data, *r, tag, flags & 1)), key=lambda c: c["number"])
    if any(c["kind"] & 0x8000 and c["kind"] not in (EVENTS, CUT) for c in chunks):
        sys.exit("a critical chunk of a later version")
    owner, defs, facts, frames = {}, {k: {} for k in SHAPES}, {}, {}
    end = next((c["first"] for c in chunks if c["kind"] == END), None)
    for c in (c for c in chunks if c["kind"] in (EVENTS, KEYFRAME, *SHAPES)):
        raw = zstandard.ZstdDecompressor().decompress(c["body"], max_output_size=c["raw"]) if c["flags"] & 1 else c["body"]
        cols = columns(raw)
        if c["kind"] == EVENTS:
            for i, event in enumerate(events_of(cols, c["count"])):
                owner[c["first"] + i] = max(owner.get(c["first"] + i, (0, 0, ())), (c["count"], c["number"], event))
        elif c["kind"] == KEYFRAME:
            frames.setdefault(c["first"], []).extend([cols[65][0], e] for e in events_of(cols, c["count"]))
        else:
            for row in rows_of(c["kind"], cols, c["count"]):
                if c["kind"] == META:
                    facts.setdefault(row[0].decode(), {}).update(json.loads(row[1]))
                elif c["kind"] == SYMBOLS:
                    names = defs[SYMBOLS].setdefault((row[1], row[2]), [])
                    names[:] = names[:row[3]] + [row]
                else:
                    defs[c["kind"]][row[0]] = row
    whole = [i for i, f in sorted(frames.items()) if i >= min(owner, default=0) and len(f) == f[0][0]]
    cut = flags & 1 and whole and (not owner or min(owner) > 0)
    start, live = (whole[0], [e for _, e in frames[whole[0]]]) if cut else (0, [])
    shown = [i for i in sorted(owner) if i >= start]
    for event in live + [owner[i][2] for i in shown]:
        print("event", *event)
    text, lines = bytes.decode, {
        STRINGS: lambda r: ("string", r[0], text(r[1])), THREADS: lambda r: ("thread", r[0], text(r[1])),
        MODULES: lambda r: ("module", *r[:5], r[5].hex(), text(r[6])), STACKS: lambda r: ("stack", r[0], r[1], *r[2]),
        CODES: lambda r: ("code", *r[:2], text(r[2]), text(r[3])), SYMBOLS: lambda r: ("symbol", *r[1:5], text(r[5]), text(r[6])),
        DEVICES: lambda r: ("device", *r[:3], r[3].hex(), r[4].hex(), text(r[5]), text(r[6]))}
    for kind, row in ((k, r) for k in lines for i in sorted(defs[k]) for r in (defs[k][i] if k == SYMBOLS else [defs[k][i]])):
        print(*lines[kind](row))
    for name in sorted(facts):
        print("meta", name, json.dumps(facts[name], separators=(",", ":"), ensure_ascii=False))
    holes = [b - a - 1 for a, b in zip([start - 1] + shown, shown + ([end] if end is not None else [])) if b - a > 1]
    print("status", len(live) + len(shown), len(holes), sum(holes), len(live), int(end is not None))
    for c in (c for c in chunks if c["kind"] == CUT):
        print("cut", c["first"], c["mark"])


main(sys.argv[1])
