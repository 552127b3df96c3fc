# SPDX-License-Identifier: Apache-2.0
"""What a restricted reader of PyTorch's snapshots takes, and what its pictures rely on."""

import pickle
import pickletools

# What the unpickler of PyTorch's MemoryViz.js knows; protocol 2 to 4, short batches.
ACCEPTED = {"PROTO", "FRAME", "MARK", "STOP", "NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1",
            "BININT2", "LONG1", "BINFLOAT", "SHORT_BINUNICODE", "BINUNICODE", "EMPTY_LIST",
            "APPEND", "APPENDS", "LIST", "EMPTY_DICT", "SETITEM", "SETITEMS", "DICT",
            "EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "MEMOIZE", "BINPUT",
            "LONG_BINPUT", "BINGET", "LONG_BINGET"}
BATCH = 1000
ACTIVE = ("active_allocated", "active_pending_free")


def load(data):
    """The snapshot, after a look at its opcodes."""
    for opcode, argument, _ in pickletools.genops(data):
        assert opcode.name in ACCEPTED, opcode.name
        if opcode.name == "PROTO":
            assert 2 <= argument <= 4
        if opcode.name == "LONG1":
            assert 0 < argument < 1 << 63
    snapshot = pickle.loads(data)
    check(snapshot)
    return snapshot


def batches(data):
    """Items of each APPENDS, innermost lists too."""
    marks, counts = [], []
    depth_items = []
    for opcode, _, _ in pickletools.genops(data):
        name = opcode.name
        if name == "MARK":
            marks.append(len(depth_items))
        elif name in ("APPENDS", "SETITEMS"):
            start = marks.pop()
            counts += [len(depth_items) - start] if name == "APPENDS" else []
            del depth_items[start:]
        elif name == "TUPLE2":
            depth_items.pop()
        elif name not in ("PROTO", "STOP", "BINPUT", "LONG_BINPUT"):
            depth_items.append(name)
    return counts


def check(snapshot):
    for segment in snapshot["segments"]:
        check_segment(segment)
    for device, entries in enumerate(snapshot["device_traces"]):
        if device not in snapshot["vramscope"]["uncertain_devices"]:
            segments, live = undo(snapshot, device, entries)
            assert snapshot["vramscope"]["filter"] or (segments, live) == ([], {}), (segments, live)


def check_segment(segment):
    """Blocks tile the segment, and its sums are theirs."""
    at = segment["address"]
    for block in segment["blocks"]:
        assert block["address"] == at and block["size"] > 0, segment
        assert isinstance(block["frames"], list)
        at += block["size"]
    assert at == segment["address"] + segment["total_size"], segment
    sums = {state: sum(block["size"] for block in segment["blocks"] if block["state"] in states)
            for state, states in (("allocated_size", ACTIVE[:1]), ("active_size", ACTIVE))}
    assert sums == {name: segment[name] for name in sums}, segment
    assert segment["segment_type"] in ("small", "large")


def within(segments, address, size):
    return any(start <= address and address + size <= end for start, end in segments)


def cut(segments, address, size):
    """Segments without a range that lies in one of them."""
    start, end = next((start, end) for start, end in segments
                      if start <= address and address + size <= end)
    segments.remove((start, end))
    segments += [part for part in ((start, address), (address + size, end)) if part[0] < part[1]]


def joined(segments, address, size):
    start, end = address, address + size
    for part in [part for part in segments if part[1] == start or part[0] == end]:
        segments.remove(part)
        start, end = min(start, part[0]), max(end, part[1])
    segments.append((start, end))


def undo(snapshot, device, entries):
    """Takes the entries back one by one from the state they led to, as the viewer does."""
    mine = [segment for segment in snapshot["segments"] if segment["device"] == device]
    segments = [(s["address"], s["address"] + s["total_size"]) for s in mine]
    live = {b["address"]: b for s in mine for b in s["blocks"] if b["state"] in ACTIVE}
    live = {address: [block["size"], block["state"]] for address, block in live.items()}
    for entry in reversed(entries):
        action, address, size = entry["action"], entry.get("addr"), entry["size"]
        if action == "alloc":
            assert live.pop(address) == [size, ACTIVE[0]], entry
        elif action == "free_completed":
            assert address not in live and within(segments, address, size), entry
            live[address] = [size, ACTIVE[1]]
        elif action == "free_requested":
            assert live[address] == [size, ACTIVE[1]], entry
            live[address][1] = ACTIVE[0]
        elif action == "segment_alloc":
            segments.remove((address, address + size))
        elif action == "segment_free":
            assert not within(segments, address, 1), entry
            segments.append((address, address + size))
        elif action == "segment_map":
            cut(segments, address, size)
        elif action == "segment_unmap":
            joined(segments, address, size)
        else:
            assert action == "oom" and entry["device_free"] >= 0, entry
        assert all(within(segments, block, of[0]) for block, of in live.items()), entry
    return segments, live
