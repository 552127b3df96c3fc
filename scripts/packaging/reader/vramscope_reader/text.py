# SPDX-License-Identifier: Apache-2.0
"""The report as text, to be read or pasted."""
import os
import textwrap

from . import kinds as k
from .cuda_errors import error_name
from .fold import DRIVER, FRAMEWORK
from .owners import SHOWN
from .stacks import NATIVE, PYTHON, backward_node, base_name, main_frame

WIDTH, TOP, OOMS_SHOWN, GAPS_SHOWN = 100, 10, 8, 3


def size(value):
    if value < 0:
        return "-" + size(-value)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024 or unit == "TiB":
            digits = 0 if unit == "B" or value >= 100 else 1 if value >= 10 else 2
            return f"{value:.{digits}f} {unit}"
        value /= 1024


def moment(ns):
    for unit, of in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if ns >= of:
            value = ns / of
            return f"{value:.{max(0, 2 - len(str(int(value))) + 1)}f} {unit}"
    return f"{ns} ns"


def root_of(figures):
    """The folder that all of the program's own Python files lie in, with its slash; "" without one."""
    folders = {frame.file.rsplit("/", 1)[0] for place in figures.places for frame in place.frames
               if frame.kind == PYTHON and frame.own and frame.file and "/" in frame.file}
    parts = os.path.commonprefix([folder.split("/") for folder in sorted(folders)])
    return "/".join(parts) + "/" if any(parts) else ""


def frame_text(frame, root):
    if frame.kind == PYTHON:
        line, file = f":{frame.line}" if frame.line else "", frame.file or "?"
        if root and file.startswith(root):
            file = file[len(root):]
        return f"{file}{line} in {frame.function or '?'}"
    if frame.kind == NATIVE:
        node = backward_node(frame)
        if node:
            return f"{node} in PyTorch's backward pass"
        where = f"{base_name(frame.file)}:{frame.line}" if frame.file and frame.line else base_name(frame.module) or "?"
        return f"{frame.function or f'+0x{frame.address:x}'} ({where})"
    return f"[{frame.function}]"


def place_text(figures, place, root):
    at = main_frame(place.frames)
    if at >= 0:
        return frame_text(place.frames[at], root)
    if place.site.kind:
        return ("", "live before recording began", "uncertain after a loss")[place.site.kind]
    return figures.label(place.site.label) or place.site.owner


def _end(figures):
    if figures.ended == "exit":
        how = "ended" + (f" with exit status {figures.exit_code}" if figures.exit_code is not None else "")
    elif figures.ended == "killed":
        how = "was killed" + (f" by signal {figures.signal}" if figures.signal is not None else "")
    else:
        how = "became another program" if figures.ended == "exec" else "has an end that is not known"
    return how


def _head(figures):
    trace, fold = figures.trace, figures.fold
    process = trace.facts.get("process", {})
    yield trace.path
    name = base_name(process["exe"]) if isinstance(process.get("exe"), str) else "program unknown"
    rank = f", rank {process['rank']}" if isinstance(process.get("rank"), int) else ""
    yield f"{name}, pid {process.get('pid', '?')}{rank}, {moment(figures.duration_ns)}, {fold.events} events"
    yield f"The program {_end(figures)}." + ("" if figures.complete else
                                            " The trace does not tell its own end: what is live is live at the cut.")
    status = trace.status
    if not trace.is_whole():
        yield (f"incomplete: {status.missing} events are missing in {status.holes} places" +
               (", the file is cut off" if status.truncated else "") +
               (f", {status.damaged} parts are damaged" if status.damaged else ""))
    for events, start, end in fold.gaps[:GAPS_SHOWN]:
        yield f"cut: {events} events between {moment(figures.at(start))} and {moment(figures.at(end))}"
    if fold.gaps:
        yield ("     short-lived blocks and events of streams; peaks, failures and what is live are as they were"
               + (f"; in all {len(fold.gaps)} gaps" if len(fold.gaps) > GAPS_SHOWN else ""))
    if fold.lost or fold.torn:
        yield f"{fold.lost} events were lost while recording, {fold.torn} cut short: what they did is uncertain"


def _device(figures, device):
    row, total = figures.trace.devices.get(device.index), device.layers[device.top]
    name = row[6].decode("utf-8", "replace") if row else ""
    owner = SHOWN.get(device.framework_owner, device.framework_owner)
    yield ""
    yield ", ".join(one for one in (f"GPU {device.index}  {name}".rstrip(),
                                    size(device.total_bytes) if device.total_bytes else "") if one)
    by = f" by {owner}" if device.framework_seen else " of the driver"
    if figures.peak_known(device):
        peak = f"{size(total.peak)} allocated{by} at {moment(figures.at(total.peak_ns))}"
    else:
        peak = "allocated: left to the native reader, events were lost"
    if device.framework_seen:
        peak += "; reserved: left to the native reader" if device.shared_pool else f"; {size(device.reserved_peak)} reserved"
    used = figures.used_known(device)
    note = "" if device.peak_is_measured else " (estimate)"
    peak += f"; {size(device.used_peak)} in use{note}" if used else "; in use: " + (device.why_not or "not measured")
    yield f"  peak   {peak}"
    end = [f"{size(total.live)} allocated"] if figures.peak_known(device) else []
    if device.framework_seen and not device.shared_pool:
        end.append(f"{size(device.reserved())} reserved")
    if used and not device.open:
        end.append(f"{size(device.used)} in use")
    yield f"  end    {'; '.join(end) or 'not known'}"


class _Line:
    """Places that one line of the program made."""

    def __init__(self, place):
        self.heaviest, self.peak, self.count, self.live = place, 0, 0, 0

    def add(self, place):
        self.peak += place.peak
        self.count += place.peak_count
        self.live += place.live


def _by_line(figures, places, root):
    lines = {}
    for place in places:
        lines.setdefault(place_text(figures, place, root), _Line(place)).add(place)
    return sorted(lines.items(), key=lambda item: -item[1].peak)


def _top(figures, device, layer, root):
    total, lines = device.layers[layer], _by_line(figures, figures.highest(device, layer), root)
    if not lines or layer != FRAMEWORK and figures.fold.lossy:
        return
    what = "allocated by the framework" if layer == FRAMEWORK else "asked of the driver" + (
        " beside the framework" if device.framework_seen else "")
    when = f"at the peak: {size(total.peak)}" if layer == device.top else "at its own highest"
    yield ""
    yield f"GPU {device.index}, {what} {when}, by line"
    yield f"  {'bytes':>10}    share   blocks      at end"
    whole = max(sum(line.peak for _, line in lines), 1)
    for name, line in lines[:TOP]:
        yield (f"  {size(line.peak):>10}  {100 * line.peak / whole:5.1f} %  {line.count:>7}  {size(line.live):>10}  "
               f"{name}")
        for frame in _callers(line.heaviest):
            yield f"{'':45}{frame_text(frame, root)}"
    if len(lines) > TOP:
        rest = sum(line.peak for _, line in lines[TOP:])
        yield f"  {size(rest):>10}  {100 * rest / whole:5.1f} %  {len(lines) - TOP} more lines"


def _callers(place):
    """The program's own Python lines that called the one the place is named after."""
    at = main_frame(place.frames)
    return [frame for frame in place.frames[at + 1:] if frame.kind == PYTHON and frame.own][:3] if at >= 0 else []


def _failed(figures):
    fold = figures.fold
    if fold.oom_count or fold.driver_ooms:
        yield ""
        yield (f"Out of memory: {fold.oom_count} requests of a framework, {fold.driver_ooms} calls of the driver; "
               "why: the native reader")
        for time_ns, _, event in fold.ooms[-OOMS_SHOWN:]:
            held = (f", {size(event.extra0)} allocated and {size(event.extra1)} reserved then"
                    if 0 < max(event.extra0, event.extra1) < 1 << 63 else "")
            yield f"  {moment(figures.at(time_ns)):>10}  {size(event.size)} on GPU {event.device}{held}"
    if fold.failures:
        yield ""
        yield "Other calls that failed"
        for (label, kind, result), failure in fold.failures.items():
            call = figures.label(label) or k.NAME.get(kind, str(kind))
            yield f"  {failure['count']:>6} times  {call}: {error_name(fold.string(label), result)}"


def report_text(figures):
    lines, root = list(_head(figures)), root_of(figures)
    for device in figures.devices():
        if device.framework_events or any(total.peak for total in device.layers) or device.measured:
            lines += _device(figures, device)
            for layer in (FRAMEWORK, DRIVER):
                lines += _top(figures, device, layer, root)
    lines += _failed(figures)
    lines.append("")
    lines += textwrap.wrap("Made by vramscope's reader in Python alone, from the events. What it cannot tell exactly it "
                           f"leaves to the native vramscope: {', '.join(figures.left_out)}.", WIDTH)
    return "\n".join(lines) + "\n"
