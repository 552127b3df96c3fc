# SPDX-License-Identifier: Apache-2.0
"""A trace: its chunks, events, definitions and facts, also of a file that is cut or damaged.
Made from docs/format.md alone; the numbers of its sections stand beside what they ask for."""
import json
import struct
from collections import namedtuple

from . import columns as col
from .packing import TRACE_MAGIC, open_trace, unpack_chunk
from .xxh64 import xxh64

EVENTS, STRINGS, THREADS, MODULES, DEVICES, STACKS, META, KEYFRAME = 0x8001, 2, 3, 4, 5, 6, 7, 8
CODES, SYMBOLS, CUT, ROOM, END = 9, 10, 0x800B, 14, 15
# Of each table (§7): the bits of its numbers, how many texts a row has, whether it has words.
SHAPES = {STRINGS: ((32,), 1, False), THREADS: ((32,), 1, False),
          MODULES: ((32, 32, 64, 64, 64), 2, False), DEVICES: ((8, 64, 1), 4, False),
          STACKS: ((32, 32), 0, True), CODES: ((32, 32), 2, False),
          SYMBOLS: ((64, 32, 64, 32, 32), 2, False), META: ((), 2, False)}
KNOWN = {EVENTS, KEYFRAME, CUT, ROOM, END, *SHAPES}
HEADER, MOST_BYTES, MOST_COUNT, FOREIGN = 64, 64 << 20, 1 << 18, 1 << 20
UNKNOWN_64 = col.M64

Event = namedtuple("Event", "sequence cells thread time kind address size stream context pool handle "
                            "extra0 extra1 free_bytes duration result module stack call label device flags")
# Columns 1 to 22 (§6).
BITS = (64, 32, 32, 64, 8, 64, 64, 64, 64, 64, 64, 64, 64, 64, 32, 33, 32, 32, 16, 16, 8, 16)
Chunk = namedtuple("Chunk", "kind flags stored raw number first mark count tag digest at")


class NotATrace(Exception):
    """One line: what is wrong with the file, and what to do."""


# ---- chunks (§3) -----------------------------------------------------------------------------


def sealed(block):
    return len(block) == HEADER and xxh64(block[:56]) == struct.unpack_from("<Q", block, 56)[0]


def header_of(block, at, tag):
    """The chunk whose header stands in `block`; None when it is none of this file."""
    if block[:4] != b"VSCK" or not sealed(block):
        return None
    _, kind, flags, stored, raw, number, first, mark, count, own, digest = \
        struct.unpack("<4sHHIIQQQIIQ", block[:56])
    if tag is not None and own != tag or count > MOST_COUNT:
        return None
    if kind != ROOM and max(stored, raw) > MOST_BYTES:
        return None
    return Chunk(kind, flags, stored, raw, number, first, mark, count, own, digest, at)


class Status:
    """What is missing or wrong with the file."""

    def __init__(self):
        self.damaged = 0       # chunks and stretches that could not be read
        self.truncated = False
        self.closed = False    # it has its END
        self.holes = self.missing = 0
        self.cut_events = self.cut_gaps = 0  # taken out when the trace was made smaller


class Trace:
    """A trace that is read: `events()` as often as wanted, the rest as attributes."""

    def __init__(self, path):
        self.path = path
        self.status = Status()
        self.file, self.bytes, cut = open_trace(path)
        self.status.truncated = cut
        self.chunks, self.tag, self.end_index = [], None, None
        self.bad = set()  # numbers of chunks of events that do not decode
        self.circular = False
        self._walk_file()
        self.chunks.sort(key=lambda chunk: chunk.number)
        self.strings, self.threads, self.modules, self.devices = {}, {}, {}, {}
        self.stacks, self.codes, self.symbols, self.facts = {}, {}, {}, {}
        self._define_all()
        self.start, self.live = 0, []
        self._find_start()

    def close(self):
        self.file.close()

    def _read(self, at, size):
        self.file.seek(at)
        return self.file.read(size)

    # ---- finding the chunks (§2, §4, §9) -----------------------------------------------------

    def _walk_file(self):
        head = self._read(0, HEADER)
        if self.bytes == 0:
            raise NotATrace(f"{self.path} is empty: nothing was recorded in it")
        good = head[:8] == TRACE_MAGIC and sealed(head)
        if head[:8] == TRACE_MAGIC and len(head) == HEADER and good:
            version, flags = struct.unpack_from("<II", head, 8)
            if version != 1:
                raise NotATrace(f"{self.path} has trace format {version}, this reader knows 1: use a newer vramscope")
            self.tag, = struct.unpack_from("<I", head, 16)
        else:
            self.status.damaged += 1
            if head[:8] != TRACE_MAGIC and self._next_header(HEADER, min(self.bytes, FOREIGN)) is None:
                raise NotATrace(f"{self.path} is not a vramscope trace: give a .vscope file")
            flags = None
        at = struct.unpack_from("<Q", head, 32)[0] if good else HEADER
        slots = self._superblock(at) if flags is None or flags & 1 else None
        if slots is None:
            self._walk(HEADER, self.bytes, False)
            return
        self.circular = True
        start, size, count = slots
        self._walk(at + HEADER, min(start, self.bytes), True)
        for slot in range(count):
            if start + slot * size >= self.bytes:
                break
            self._walk(start + slot * size, min(start + (slot + 1) * size, self.bytes), True)

    def _superblock(self, at):
        block = self._read(at, HEADER)
        if at % HEADER or block[:4] != b"VSSB" or not sealed(block):
            return None
        tag, start, size, count = struct.unpack_from("<IQQQ", block, 4)
        if self.tag not in (None, tag) or start % HEADER or size % HEADER or not size or not count:
            return None
        return (start, size, count) if start >= at + HEADER else None

    def _next_header(self, at, end):
        """The next place in [at, end) with a header of this file."""
        while at + HEADER <= end:
            window = self._read(at, min(1 << 20, end - at))
            for offset in range(0, len(window) - HEADER + 1, HEADER):
                if window[offset:offset + 4] == b"VSCK" and \
                        header_of(window[offset:offset + HEADER], at + offset, self.tag):
                    return at + offset
            at += max(len(window) // HEADER * HEADER, HEADER)
        return None

    def _walk(self, at, end, slot):
        """The sound chunks of one region."""
        number, damaged_before, whole_end = -1, self.status.damaged, at
        while at + HEADER <= end:
            block = self._read(at, HEADER)
            chunk = header_of(block, at, self.tag)
            fits = chunk is not None and chunk.stored <= end - at - HEADER
            if fits and (chunk.kind == ROOM or xxh64(self._read(at + HEADER, chunk.stored)) == chunk.digest):
                if slot and chunk.number < number:
                    return
                if chunk.kind == ROOM and chunk.first and chunk.first == whole_end:
                    self.status.truncated, self.status.damaged = True, damaged_before
                self._take(chunk)
                number, at = chunk.number, at + (2 * HEADER + chunk.stored - 1) // HEADER * HEADER
                whole_end, damaged_before = at, self.status.damaged
                continue
            if slot and not fits and (number >= 0 or not any(block)):
                return
            following = self._next_header(at + HEADER, end)
            cut = following is None and (chunk is not None and not fits or not any(block))
            self.status.truncated |= cut and not slot
            self.status.damaged += not cut
            at = end if following is None else following
        if at != end and not slot:
            self.status.truncated = True

    def _take(self, chunk):
        if self.tag is None:
            self.tag = chunk.tag
        if chunk.kind not in KNOWN or chunk.flags & ~1:
            if chunk.kind & 0x8000:
                raise NotATrace(f"{self.path} holds chunks of type 0x{chunk.kind:04x} that must be understood: "
                                "use a newer vramscope")
        elif chunk.kind == END:
            self.end_index = chunk.first
            self.status.closed = True
        elif chunk.kind == CUT:
            self.status.cut_events, self.status.cut_gaps = chunk.first, chunk.mark
        elif chunk.kind != ROOM:
            self.chunks.append(chunk)

    def _payload(self, chunk):
        body = self._read(chunk.at + HEADER, chunk.stored)
        if chunk.flags & 1:
            return unpack_chunk(body, chunk.raw)
        if chunk.stored != chunk.raw:
            raise ValueError("two sizes of what is not packed")
        return body

    # ---- definitions (§7, §8) -----------------------------------------------------------------

    def _define_all(self):
        take = {STRINGS: self._take_text(self.strings), THREADS: self._take_text(self.threads),
                MODULES: self._take_row(self.modules), DEVICES: self._take_device,
                STACKS: self._take_row(self.stacks), CODES: self._take_row(self.codes),
                SYMBOLS: self._take_symbol, META: self._take_fact}
        for chunk in self.chunks:
            if chunk.kind not in take:
                continue
            try:
                rows = rows_of(chunk, self._payload(chunk))
            except ValueError:
                self.status.damaged += 1
                continue
            for row in rows:
                take[chunk.kind](row)

    @staticmethod
    def _take_text(table):
        def take(row):
            table[row[0]] = row[1].decode("utf-8", "replace")
        return take

    @staticmethod
    def _take_row(table):
        def take(row):
            table[row[0]] = row
        return take

    def _take_device(self, row):
        if row[0] < 128 and len(row[3]) == len(row[4]) == 16:
            self.devices[row[0]] = row

    def _take_symbol(self, row):
        names = self.symbols.setdefault((row[1], row[2]), []) if row[3] == 0 else self.symbols.get((row[1], row[2]))
        if row[3] == 0:
            del names[:]
        if names is not None and row[3] == len(names):
            names.append(row)

    def _take_fact(self, row):
        try:
            fields = json.loads(row[1].decode("utf-8"))
        except ValueError:
            return
        if isinstance(fields, dict):
            self.facts.setdefault(row[0].decode("utf-8", "replace"), {}).update(fields)

    # ---- events (§6, §9) ------------------------------------------------------------------------

    def _events_of(self, chunk):
        return decode_events(chunk.count, self._payload(chunk))

    def _find_start(self):
        """The key frame that stands for a beginning that was overwritten (§4)."""
        own = [chunk for chunk in self.chunks if chunk.kind == EVENTS and chunk.count]
        lowest = min((chunk.first for chunk in own), default=None)
        if not self.circular or lowest == 0:
            return
        parts = {}
        for chunk in self.chunks:
            if chunk.kind == KEYFRAME and (lowest is None or chunk.first >= lowest):
                parts.setdefault(chunk.first, []).append(chunk)
        for first in sorted(parts):
            live = self._whole_keyframe(parts[first])
            if live is not None:
                self.start, self.live = first, live
                return

    def _whole_keyframe(self, chunks):
        live, total = [], 0
        for chunk in chunks:
            try:
                rows, extra = decode_events(chunk.count, self._payload(chunk), with_place=True)
            except ValueError:
                return None
            for event, ordinal, all_ in zip(rows, *extra):
                if ordinal == 0:
                    live = []
                if ordinal != len(live):
                    return None
                live.append(event)
                total = all_
        return live if total == len(live) else None

    def _plan(self):
        """[(first, behind the last, chunk)]: which chunk each index comes from (§9, 4)."""
        taken = []
        chosen = [chunk for chunk in self.chunks
                  if chunk.kind == EVENTS and chunk.count and chunk.number not in self.bad]
        # Those that win come first; the others fill what is left.
        for chunk in sorted(chosen, key=lambda one: (one.count, one.number), reverse=True):
            at, end, parts = chunk.first, chunk.first + chunk.count, []
            for first, behind, _ in _overlapping(taken, at, end):
                if first > at:
                    parts.append((at, first, chunk))
                at = max(at, behind)
            if at < end:
                parts.append((at, end, chunk))
            for part in parts:
                _insert(taken, part)
        return taken

    def events(self):
        """All events, in their order. What is missing between them is counted in `status`."""
        yield from self.live
        at, holes, missing = self.start, 0, 0
        while True:
            for first, behind, chunk in self._plan():
                if behind <= at:
                    continue
                try:
                    rows = self._events_of(chunk)
                except ValueError:
                    self.bad.add(chunk.number)
                    self.status.damaged += 1
                    break
                if first > at:
                    holes, missing = holes + 1, missing + first - at
                    at = first
                yield from rows[at - chunk.first:behind - chunk.first]
                at = behind
            else:
                break
        if self.end_index is not None and self.end_index > at:
            holes, missing = holes + 1, missing + self.end_index - at
        self.status.holes, self.status.missing = holes, missing

    def is_whole(self):
        """After events(): nothing is missing that the file should hold."""
        status = self.status
        return not (status.truncated or status.damaged or status.holes)


def _overlapping(parts, start, end):
    low = _lower(parts, start)
    while low < len(parts) and parts[low][0] < end:
        yield parts[low]
        low += 1


def _lower(parts, start):
    """Index of the first of the ordered parts that ends behind `start`."""
    low, high = 0, len(parts)
    while low < high:
        middle = (low + high) // 2
        if parts[middle][1] <= start:
            low = middle + 1
        else:
            high = middle
    return low


def _insert(parts, part):
    parts.insert(_lower(parts, part[0]), part)


# ---- payloads ----------------------------------------------------------------------------------


def _numbers(cells, ident, count, bits):
    """A column of `count` numbers that fit `bits`; zeros when it is not there."""
    if ident not in cells:
        return [0] * count
    coding, data = cells[ident]
    values = col.decoded(coding, data, count)
    if len(values) != count or count and max(values) >> bits:
        raise ValueError("a column that does not fit its chunk")
    return values


def _totals(cells, ident, count, rows):
    """Columns 12 and 13, which may say what a framework's own totals differ by from a prediction."""
    if cells.get(ident, (0,))[0] != col.TOTALS:
        return _numbers(cells, ident, count, 64)
    data = cells[ident][1]
    if not data or not 1 <= data[0] <= 4:
        raise ValueError("totals in an unknown coding")
    rest = list(map(col.unzigzag, col.decoded(data[0], data[1:], count)))
    if len(rest) != count:
        raise ValueError("a column that does not fit its chunk")
    last = {}
    for i, (kind, size, device) in enumerate(zip(rows[4], rows[6], rows[20])):
        if 80 <= kind <= 82:
            change = (size, -size, 0)[kind - 80] if ident == 12 else 0
            rest[i] += last.get(device, 0) + change
            last[device] = rest[i]
    return [value & UNKNOWN_64 for value in rest]


def decode_events(count, payload, with_place=False):
    """Events of a chunk; of a key frame with the columns 64 and 65."""
    cells = col.split_columns(payload)
    rows = [_numbers(cells, i + 1, count, bits) if i not in (11, 12) else None for i, bits in enumerate(BITS)]
    for ident in (12, 13):
        rows[ident - 1] = _totals(cells, ident, count, rows)
    rows[13] = [value - 1 & UNKNOWN_64 for value in rows[13]]
    if 16 in cells:
        rows[15] = list(map(col.unzigzag, rows[15]))
        if count and not -1 << 31 <= min(rows[15]) <= max(rows[15]) < 1 << 31:
            raise ValueError("a result that does not fit")
    rows[20] = [((value - 1 & 255) ^ 128) - 128 for value in rows[20]]
    _check_order(rows[0], rows[1], strict=not with_place)
    events = list(map(Event._make, zip(*rows)))
    if with_place:
        return events, (_numbers(cells, 64, count, 64), _numbers(cells, 65, count, 64))
    return events


def _check_order(sequences, cells, strict):
    behind = 0
    for sequence, own in zip(sequences, cells):
        if sequence < behind:
            raise ValueError("sequences that go back")
        behind = sequence + own if strict else sequence


def rows_of(chunk, payload):
    """[numbers…, texts…, words] of each row of a table of definitions."""
    bits, texts, has_words = SHAPES[chunk.kind]
    cells, count = col.split_columns(payload), chunk.count
    out = [_numbers(cells, 1 + i, count, 64) for i in range(len(bits))]
    for i in range(texts):
        coding, data = cells.get(17 + 2 * i, (col.BYTES, b""))
        if coding != col.BYTES:
            raise ValueError("texts in a coding of numbers")
        out.append(_cut(data, _numbers(cells, 16 + 2 * i, count, 32)))
    if has_words:
        lengths = _numbers(cells, 32, count, 32)
        most = sum(lengths)
        if most > col.MOST_VALUES:
            raise ValueError("more words than a chunk can hold")
        out.append(_cut(_numbers(cells, 33, most, 64), lengths))
    rows = list(zip(*out))
    return [row for row in rows if not any(row[i] >> wide for i, wide in enumerate(bits))]


def _cut(data, lengths):
    if sum(lengths) != len(data):
        raise ValueError("texts that do not fit their lengths")
    out, at = [], 0
    for length in lengths:
        out.append(data[at:at + length])
        at += length
    return out
