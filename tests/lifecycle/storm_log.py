# SPDX-License-Identifier: Apache-2.0
"""Reads the storm's own log (storm.h) and holds a trace against it."""

import collections
import struct

from lab import check

HEADER_BYTES, HEAD, THREAD, ENTRY = 4096, "<QIIQQ", "<QQII", "<QQQQ"
MAGIC = 0x314d524f545356
MEMORY_KINDS = {"alloc", "free"}

Thread = collections.namedtuple("Thread", "tid produced entries")


def read(path):
    """[Thread]; entries are (time_ns, address, size, number), size 0 = a free."""
    with open(path, "rb") as file:
        data = file.read()
    if len(data) < HEADER_BYTES:
        return []
    magic, threads, _, per_thread, _ = struct.unpack_from(HEAD, data)
    if magic != MAGIC:
        return []
    found = []
    for index in range(threads):
        count, produced, tid, _ = struct.unpack_from(THREAD, data, struct.calcsize(HEAD) + 24 * index)
        at = HEADER_BYTES + index * per_thread * struct.calcsize(ENTRY)
        entries = list(struct.iter_unpack(ENTRY, data[at:at + count * struct.calcsize(ENTRY)]))
        found.append(Thread(tid, produced, entries))
    return found


def started(path):
    """Has any thread made a call? (Reads the header only.)"""
    with open(path, "rb") as file:
        data = file.read(HEADER_BYTES)
    if len(data) < HEADER_BYTES or struct.unpack_from("<Q", data)[0] != MAGIC:
        return False
    threads = struct.unpack_from("<I", data, 8)[0]
    return any(struct.unpack_from("<Q", data, struct.calcsize(HEAD) + 24 * index)[0]
               for index in range(threads))


def recorded(events):
    """Memory events of a trace by thread: {tid: [(address, size)]}, size 0 = a free."""
    by_thread = collections.defaultdict(list)
    for event in events:
        if event["kind"] in MEMORY_KINDS and event.get("result", 0) in (0, "CUDA_SUCCESS", None):
            size = 0 if event["kind"] == "free" else event.get("size", 0)
            by_thread[event["thread"]].append((event.get("address", 0), size))
    return by_thread


def compare(threads, events, older_than_ns=None):
    """Every logged call (older than a time, if given) is in the trace, per thread
    and in order; the trace has at most one call per thread that the log has not
    (made, not yet noted when the end came). Returns the number of calls held."""
    by_thread = recorded(events)
    held = 0
    for thread in threads:
        wanted = [(address, size) for time_ns, address, size, _ in thread.entries
                  if older_than_ns is None or time_ns < older_than_ns]
        got = by_thread.get(thread.tid, [])
        logged = [(address, size) for _, address, size, _ in thread.entries]
        common = next((i for i, pair in enumerate(zip(logged, got)) if pair[0] != pair[1]),
                      min(len(logged), len(got)))
        check(common >= len(wanted),
              f"thread {thread.tid}: of {len(wanted)} calls that must be there only {common} agree "
              f"(logged {len(logged)}, in the trace {len(got)}); first difference "
              f"{logged[common:common + 1]} and {got[common:common + 1]}")
        check(len(got) <= len(logged) + 1,
              f"thread {thread.tid}: {len(got)} calls in the trace, {len(logged)} were made")
        held += len(wanted)
    return held
