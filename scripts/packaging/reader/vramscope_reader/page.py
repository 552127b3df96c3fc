# SPDX-License-Identifier: Apache-2.0
"""The HTML page: the same page as `vramscope export -f html` makes, with the data that this reader computes.
The trace is read twice: for the figures and the thinned curves, which say where the interesting instants
are, and once more for what was live at these."""
import json
import os

from .curve import COLUMNS, DEVICE, MEASURED, SEQUENCE, TIME, Curve
from .figures import Figures, main_frame
from .fold import FRAMEWORK, HOST, Fold
from .stacks import NATIVE

SAMPLED, PEAK_LIVE, PEAK_RESERVED, PEAK_DEVICE, AT_OOM, _ASKED, AT_END = (1 << bit for bit in range(7))
KEY = PEAK_LIVE | PEAK_RESERVED | PEAK_DEVICE | AT_OOM | AT_END
STRETCHES, STRETCHES_LEAST, PARTS, PARTS_LEAST = 6000, 1000, 160, 24
OOM_SETS, SET_SITES, KEY_SITES = 8, 250, 2000
TEMPLATE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "page.html")


def _without(status):
    return f"of a cut trace, without {status.cut_events} events" if status.cut_gaps else None


class Recorder:
    """What the first reading gathers of each device."""

    def __init__(self):
        self.curves, self.marks = {}, {}
        self.room = STRETCHES

    def on_change(self, fold, device):
        curve = self.curves.get(device.index)
        if curve is None:
            each = max(STRETCHES // max(len(fold.trace.devices), 1), STRETCHES_LEAST)
            curve, self.marks[device.index] = Curve(each), {}
            self.curves[device.index] = curve
        if not fold.in_gap:  # there the curve goes on as it was
            self._add(curve, fold, device)
        self._note_peaks(fold, device)

    @staticmethod
    def _add(curve, fold, device):
        reserved, backed = device.reserved(), device.backed()
        allocated = device.layers[FRAMEWORK].live if device.framework_seen else 0
        measured = device.measured and not device.open and device.why_not is None
        used = device.used if measured else 0
        other = device.other_bytes if measured else 0
        curve.add(max(fold.now_ns - fold.start_ns, 0), fold.sequence, device.layers[device.top].live, allocated,
                  reserved, used, backed, other, used - backed - other if measured else 0, fold.host_pinned,
                  int(measured))

    def _note_peaks(self, fold, device):
        marks, at = self.marks[device.index], (fold.sequence, max(fold.now_ns - fold.start_ns, 0))
        for name, mark in (("live0", device.layers[0].epoch), ("live1", device.layers[1].epoch),
                           ("reserved", device.reserved_peak), ("device", device.used_peak)):
            if mark and marks.get(name, (0,))[0] != mark:
                marks[name] = (mark, *at)


# ---- instants --------------------------------------------------------------------------------------


def _choose(figures, recorder, shown):
    """{(sequence or None for the end, device): [time, reasons]}"""
    wanted = {}

    def want(device, sequence, time, reason):
        wanted.setdefault((sequence, device.index), [time, 0])[1] |= reason

    for device in shown:
        marks = recorder.marks[device.index]
        for row in recorder.curves[device.index].samples(max(PARTS // len(shown), PARTS_LEAST)):
            want(device, row[SEQUENCE], row[TIME], SAMPLED)
        for name, reason in (("live" + str(device.top), PEAK_LIVE), ("reserved", PEAK_RESERVED), ("device", PEAK_DEVICE)):
            if name in marks and (name != "device" or figures.used_known(device)):
                want(device, *marks[name][1:], reason)
        want(device, None, figures.duration_ns, AT_END)
    by_index = {device.index: device for device in shown}
    for time_ns, sequence, event in [one for one in figures.fold.ooms if one[2].device in by_index][-OOM_SETS:]:
        want(by_index[event.device], sequence, figures.at(time_ns), AT_OOM)
    return wanted


def _live_of(fold, index, reasons):
    """[[site's key, bytes, count]], most first, and the sums over all."""
    top = fold.devices[index].top
    live = [(site.key, site.live, site.count) for site in fold.sites.values()
            if site.device == index and site.layer != HOST and site.live and
            not (site.segment and top == FRAMEWORK) and not (fold.lossy and site.layer != FRAMEWORK)]
    live.sort(key=lambda one: -one[1])
    total = [len(live), sum(one[1] for one in live), sum(one[2] for one in live)]
    kept = live[:KEY_SITES if reasons & KEY else SET_SITES]
    return [one for one in kept if one[1] >= 0], total


def _take_sets(trace, wanted):
    """The second reading: what was live right after each wanted event."""
    order = sorted((key for key in wanted if key[0] is not None))
    fold, taken, at = Fold(trace), {}, 0

    def take(key):
        if key[1] in fold.devices:  # not yet, where sequences of a damaged trace go back
            taken[key] = _live_of(fold, key[1], wanted[key][1])

    for event in trace.events():
        while at < len(order) and order[at][0] < event.sequence:
            take(order[at])
            at += 1
        fold.event(event)
    for key in order[at:] + [key for key in wanted if key[0] is None]:
        take(key)
    return taken


# ---- the data ------------------------------------------------------------------------------------------


class Table:
    """Numbers for things that are named again and again."""

    def __init__(self):
        self.items, self.numbers = [], {}

    def number(self, item):
        if item not in self.numbers:
            self.numbers[item] = len(self.items)
            self.items.append(item)
        return self.numbers[item]


class Page:
    def __init__(self, path, version):
        self.recorder = Recorder()
        self.figures = Figures(path, self.recorder.on_change)
        self.version = version
        self.strings, self.frames, self.chosen = Table(), Table(), Table()
        self.place_of = {}
        lowest = {}
        for site in self.figures.fold.sites.values():
            frames = self.figures.stacks.frames(site.stack)
            key = (frames or site.stack, *site.key[1:])
            self.place_of[site.key] = lowest.setdefault(key, site.key)

    def _string(self, text):
        return self.strings.number(text) if text else -1

    def _frame(self, frame):
        function = frame.function
        if function is None and frame.kind == NATIVE:
            function = f"+0x{frame.address:x}"
        return self.frames.number((self._string(function), self._string(frame.file), frame.line,
                                   self._string(frame.module), frame.kind, int(frame.own)))

    def _place(self, key):
        site = self.figures.fold.sites[key]
        frames = self.figures.stacks.frames(site.stack)
        label = self.figures.label(site.label)
        return [site.layer, site.kind, self._string(site.owner), self._string(label),
                site.stack if frames else -1, main_frame(frames), [self._frame(frame) for frame in frames]]

    def _trace(self):
        trace, figures = self.figures.trace, self.figures
        process = trace.facts.get("process", {})
        exe, rank = process.get("exe"), process.get("rank")
        return {"file": os.path.basename(trace.path), "exe": exe.rsplit("/", 1)[-1] if isinstance(exe, str) else None,
                "rank": rank if isinstance(rank, int) else None, "events": figures.fold.events,
                "lost": figures.fold.lost, "torn": figures.fold.torn, "complete": figures.complete,
                "damaged": bool(trace.status.damaged or trace.status.truncated), "ended": figures.ended, "exit_code": figures.exit_code,
                "signal": figures.signal, "duration_ns": figures.duration_ns, "from_ns": 0,
                "to_ns": figures.duration_ns, "filter": _without(trace.status)}

    def _rows(self, device, curve):
        rows, out = curve.rows(), {"time": TIME, **COLUMNS}
        if self.figures.fold.lossy:
            del out["backed"], out["pinned"]
        known = self.figures.used_known(device)
        if not known:
            del out["rest"], out["other"]
        for name, column in out.items():
            values = [row[column] for row in rows]
            if not known and column in (DEVICE, MEASURED):
                values = [0] * len(rows)
            out[name] = [after - before for before, after in zip([0] + values, values)]
        return out

    def _device(self, device):
        figures, curve = self.figures, self.recorder.curves[device.index]
        row, total = figures.trace.devices.get(device.index), device.layers[device.top]
        out = {"index": device.index, "name": row[6].decode("utf-8", "replace") or None if row else None,
               "total": device.total_bytes or None, "framework": device.framework_owner if device.framework_seen else None,
               "seen": curve.seen, "stretch_rows": curve.most_rows, "peak": total.peak,
               "peak_ns": figures.at(total.peak_ns), "reserved_peak": device.reserved_peak,
               "device_peak": device.used_peak if figures.used_known(device) else None,
               "rows": self._rows(device, curve)}
        if device.measured and device.why_not:
            out["device_note"] = "left to the native reader: " + device.why_not
        return out

    def _instants(self, wanted, taken):
        out = []
        for key in sorted(taken, key=lambda one: not wanted[one][1] & KEY):
            time, reasons = wanted[key]
            live, total = taken[key]
            merged = {}
            for site, size, count in live:
                sums = merged.setdefault(self.place_of[site], [0, 0])
                sums[0] += size
                sums[1] += count
            flat = [number for place, sums in merged.items() for number in (self.chosen.number(place), *sums)]
            out.append({"device": key[1], "at_ns": time, "sequence": key[0], "reasons": reasons, "live": flat,
                        "total": total})
        return out

    def _notes(self, hidden):
        fold, notes = self.figures.fold, []
        notes.append("Made by the reader in Python alone, from the events. What it cannot tell exactly it leaves to the "
                     f"native vramscope: {', '.join(self.figures.left_out)}.")
        if self.figures.trace.status.missing:
            notes.append(f"{self.figures.trace.status.missing} events that the trace should hold are missing in it.")
        if fold.oom_count or fold.driver_ooms:
            notes.append(f"Requests that ran out of memory: {fold.oom_count} of a framework, {fold.driver_ooms} of the "
                         "driver; why, says the native `vramscope report`.")
        for device in hidden:
            notes.append(f"GPU {device.index} is not shown: {self.figures.why_hidden(device)}, and what it held is uncertain "
                         "by more than this reader can tell.")
        return notes

    def data(self):
        figures = self.figures
        seen = [device for device in figures.devices() if device.index in self.recorder.curves]
        shown = [device for device in seen if figures.why_hidden(device) is None]
        wanted = _choose(figures, self.recorder, shown)
        instants = self._instants(wanted, _take_sets(figures.trace, wanted))
        places = [self._place(key) for key in self.chosen.items]
        return {"schema": "vramscope-html/1", "version": self.version, "at": "peak", "min_bytes": 0,
                "oom_sets": OOM_SETS, "reader": {"name": "python",
                                                 "notes": self._notes([one for one in seen if one not in shown])},
                "trace": self._trace(), "devices": [self._device(device) for device in shown], "findings": [],
                "ooms_left_out": 0, "growth_left_out": 0, "phases": [], "phases_left_out": 0, "instants": instants,
                "places": places, "frames": [list(one) for one in self.frames.items], "strings": self.strings.items}


def write_page(path, version, out):
    """Writes the page of a trace; returns its figures."""
    page = Page(path, version)
    data = json.dumps(page.data(), separators=(",", ":"), ensure_ascii=False)
    for mark in "<>&\u2028\u2029":
        data = data.replace(mark, f"\\u{ord(mark):04x}")
    with open(TEMPLATE, encoding="utf-8") as file:
        head, tail = file.read().split("@DATA@")
    out.write((head + data + tail).encode("utf-8", "replace"))
    return page.figures
