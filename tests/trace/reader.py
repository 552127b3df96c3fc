#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads a .vscope trace by docs/format.md alone and prints what is in it.

Uses no code of this project: it shows that the document is enough. The output is
that of trace-dump, line by line. reader.py FILE
"""
import json
import struct
import sys

import xxhash
import zstandard

M64 = (1 << 64) - 1
EVENTS, STRINGS, THREADS, MODULES, DEVICES, STACKS, META, KEYFRAME, ROOM, END = (
    0x8001, 2, 3, 4, 5, 6, 7, 8, 0xE, 0xF)
SHAPES = {STRINGS: (1, 1), THREADS: (1, 1), MODULES: (5, 2), DEVICES: (3, 4), STACKS: (1, 0), META: (0, 2)}
BITS = {2: 32, 3: 32, 5: 8, 15: 32, 16: 32, 17: 32, 18: 32, 19: 16, 20: 16, 21: 8, 22: 16}


def sealed(block):
    return len(block) == 64 and xxhash.xxh64_intdigest(block[:56]) == struct.unpack("<Q", block[56:])[0]


def header_at(data, at, tag):
    block = data[at:at + 64]
    if block[:4] != b"VSCK" or not sealed(block):
        return None
    _, kind, flags, stored, raw, number, first, mark, count, own, digest = struct.unpack("<4sHHIIQQQIIQ", block[:56])
    if tag[0] not in (None, own) or kind != ROOM and max(stored, raw) > 64 << 20 or count > 1 << 18:
        return None
    return dict(at=at, kind=kind, flags=flags, stored=stored, raw=raw, number=number, first=first, mark=mark,
                count=count, tag=own, digest=digest, next=at + (64 + stored + 63) // 64 * 64)


def resync(data, at, end, tag):
    while at + 64 <= end and not header_at(data, at, tag):
        at += 64
    return at if at + 64 <= end else end


def walk(data, at, end, tag, slot):
    """Chunks of one region, and whether it ends as it should."""
    number, any_seen = -1, False
    while at + 64 <= end:
        head = header_at(data, at, tag)
        fits = head and head["stored"] <= end - at - 64
        body = data[at + 64:at + 64 + head["stored"]] if fits else b""
        if fits and (head["kind"] == ROOM or xxhash.xxh64_intdigest(body) == head["digest"]):
            if slot and any_seen and head["number"] < number:
                return
            number, any_seen, tag[0], at = head["number"], True, head["tag"], head["next"]
            yield dict(head, body=body)
        elif fits:
            at = head["next"] if head["next"] >= end or header_at(data, head["next"], tag) else resync(data, at + 64, end, tag)
        elif slot and (any_seen or not any(data[at:at + 64])):
            return
        else:
            at = resync(data, at + 64, end, tag)


def varints(data):
    value = shift = 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield value
            value = shift = 0


def unzigzag(value):
    return value >> 1 ^ -(value & 1)


def columns(payload, count):
    """{id: values or bytes} of a payload."""
    out, at = {}, 0
    def number():
        nonlocal at
        start = at
        while payload[at] > 127:
            at += 1
        at += 1
        return next(varints(payload[start:at]))
    while at < len(payload):
        ident, coding, at = number(), payload[at], at + 1
        size = number()
        data, at = payload[at:at + size], at + size
        values = data if coding == 0 else list(varints(data))
        if coding in (3, 4):
            values = [v for run, v in zip(values[::2], values[1::2]) for _ in range(run)]
        if coding in (2, 4):
            total, summed = 0, []
            for value in values:
                total = total + unzigzag(value) & M64
                summed.append(total)
            values = summed
        out[ident] = values
    return out


def events_of(cols, count):
    rows = [cols.get(i, [0] * count) for i in range(1, 23)]
    rows[13] = [v - 1 & M64 for v in rows[13]]           # free_bytes
    rows[15] = [unzigzag(v) for v in rows[15]]           # result
    rows[20] = [((v - 1 & 255) ^ 128) - 128 for v in rows[20]]  # device
    return list(zip(*rows))


def rows_of(kind, cols, count):
    numbers, texts = SHAPES[kind]
    ends = [0] * 5
    for row in range(count):
        out = [cols.get(1 + i, [0] * count)[row] for i in range(numbers)]
        for i in range(texts):
            size = cols.get(16 + 2 * i, [0] * count)[row]
            out.append(bytes(cols.get(17 + 2 * i, b""))[ends[i]:ends[i] + size])
            ends[i] += size
        if kind == STACKS:
            size = cols.get(32, [0] * count)[row]
            out.append(cols.get(33, [0] * (ends[4] + size))[ends[4]:ends[4] + size])
            ends[4] += size
        yield out


def main(path):
    data = open(path, "rb").read()
    magic, version, flags, ident, superblock = struct.unpack("<8sII16sQ", data[:40])
    if magic != b"\x89VSCOPE\n" or not sealed(data[:64]) or version != 1:
        sys.exit("not a trace of version 1")
    tag, regions = [struct.unpack("<I", ident[:4])[0]], [(64, len(data), False)]
    if flags & 1:
        start, size, slots = struct.unpack("<QQQ", data[superblock + 8:superblock + 32])
        regions = [(superblock + 64, start, True)] + [
            (start + i * size, min(start + (i + 1) * size, len(data)), True) for i in range(slots)]
    chunks = sorted((c for r in regions for c in walk(data, *r[:2], tag, r[2])), key=lambda c: c["number"])
    if any(c["kind"] & 0x8000 and c["kind"] != EVENTS for c in chunks):
        sys.exit("a critical chunk of a later version")
    owner, defs, facts, frames, end = {}, {k: {} for k in SHAPES}, {}, {}, None
    for c in chunks:
        if c["kind"] == END:
            end = c["first"]
        if c["kind"] in (ROOM, END) or c["kind"] not in SHAPES and c["kind"] not in (EVENTS, KEYFRAME):
            continue
        raw = zstandard.ZstdDecompressor().decompress(c["body"], max_output_size=c["raw"]) if c["flags"] & 1 else c["body"]
        cols = columns(raw, c["count"])
        if c["kind"] == EVENTS:
            for i, event in enumerate(events_of(cols, c["count"])):
                owner[c["first"] + i] = max(owner.get(c["first"] + i, (0, 0, ())), (c["count"], c["number"], event))
        elif c["kind"] == KEYFRAME:
            frames.setdefault(c["first"], []).extend([cols[65][0], e] for e in events_of(cols, c["count"]))
        else:
            for row in rows_of(c["kind"], cols, c["count"]):
                if c["kind"] == META:
                    facts.setdefault(row[0].decode(), {}).update(json.loads(row[1]))
                else:
                    defs[c["kind"]][row[0]] = row
    start, live = 0, []
    if flags & 1 and (not owner or min(owner) > 0):
        whole = [i for i, f in sorted(frames.items()) if i >= min(owner, default=0) and len(f) == f[0][0]]
        if whole:
            start, live = whole[0], [e for _, e in frames[whole[0]]]
    shown = [i for i in sorted(owner) if i >= start]
    for event in live + [owner[i][2] for i in shown]:
        print("event", *event)
    text = lambda b: b.split(b"\0")[0].decode()
    for kind, word in ((STRINGS, "string"), (THREADS, "thread"), (MODULES, "module"), (STACKS, "stack"), (DEVICES, "device")):
        for ident, row in sorted(defs[kind].items()):
            if kind == STACKS:
                print(word, ident, *row[1])
            elif kind == DEVICES:
                print(word, ident, *row[1:3], row[3].hex(), row[4].hex(), text(row[5]), text(row[6]))
            elif kind == MODULES:
                print(word, *row[:5], row[5].hex(), text(row[6]))
            else:
                print(word, ident, text(row[1]))
    for name in sorted(facts):
        print("meta", name, json.dumps(facts[name], separators=(",", ":"), ensure_ascii=False))
    holes = [b - a - 1 for a, b in zip([start - 1] + shown, shown + ([end] if end is not None else [])) if b - a > 1]
    print("status", len(live) + len(shown), len(holes), sum(holes), len(live), int(end is not None))


main(sys.argv[1])
