# SPDX-License-Identifier: Apache-2.0
"""A trace read through the fold: what the report and the page say of it."""
import os

from . import kinds as k
from .cuda_errors import error_name
from .fold import CALL, FRAMEWORK, LAYER_NAMES, MOST, SITE_NAMES, Fold
from .stacks import NATIVE, NOTE, main_frame
from .trace import Trace

LEFT_OUT = ("why requests ran out of memory", "growth", "fragmentation", "segments", "phases", "objects",
            "memory by difference (context, modules, graphs)", "direct memory as the device rounds it",
            "what memory was for", "slow calls")
RING = "the events in the ring beside the trace"  # docs/format.md §12: read by the version that wrote it

GAPS_KEPT = 4096


class Place:
    """Sites whose stacks have the same frames, and which are alike in all else."""

    def __init__(self, site, stack, frames):
        self.site, self.stack, self.frames = site, stack, frames
        self.allocs = self.frees = self.failed = self.bytes = 0
        self.peak = self.peak_count = self.live = self.count = 0

    def add(self, site):
        self.allocs += site.allocs
        self.frees += site.frees
        self.failed += site.failed
        self.bytes += site.bytes
        self.peak += site.peak
        self.peak_count += site.peak_count
        self.live += site.live
        self.count += site.count


class Figures:
    def __init__(self, path, on_change=None):
        self.trace = Trace(path)
        self.fold = Fold(self.trace, on_change)
        for event in self.trace.events():
            self.fold.event(event)
        self.fold.finish()
        self.stacks = self.fold.stacks
        self.left_out = list(LEFT_OUT)
        if not self.trace.status.closed and os.path.exists(path + ".ring"):
            self.left_out.insert(0, RING)
        self._take_end()
        self.places = self._merge()

    def _take_end(self):
        end, fold = self.trace.facts.get("end", {}), self.fold
        self.ended = end.get("ended") if end.get("ended") in ("exit", "killed", "exec") else "unknown"
        self.exit_code, self.signal = (_integer(end.get(name)) for name in ("exit_code", "signal"))
        self.complete = end.get("complete") is True and self.trace.is_whole()
        self.start_ns = fold.start_ns
        self.duration_ns = max(max(_integer(end.get("at_ns")) or 0, fold.now_ns) - fold.start_ns, 0)

    def at(self, time_ns):
        return max(time_ns - self.start_ns, 0)

    def devices(self):
        return [self.fold.devices[index] for index in sorted(self.fold.devices) if index >= 0]

    def knows(self, site):
        """Lost events make what the driver handed out uncertain by more than this reader can tell."""
        return site.layer == FRAMEWORK or not self.fold.lossy

    def peak_known(self, device):
        return device.top == FRAMEWORK or not self.fold.lossy

    def why_hidden(self, device):
        """Why the device has no curves that are exact; None when it has."""
        if not self.peak_known(device):
            return "events were lost"
        return "the framework took over a pool that others had used" if device.shared_pool else None

    def used_known(self, device):
        return device.measured and device.why_not is None

    def label(self, ident):
        return self.fold.string(ident) or None

    def _merge(self):
        lowest = {}
        for stack in sorted({site.stack for site in self.fold.sites.values() if site.stack}):
            frames = self.stacks.frames(stack)
            lowest.setdefault(_what(frames) if frames else stack, stack)
        places = {}
        for site in self.fold.sites.values():
            frames = self.stacks.frames(site.stack)
            first = lowest[_what(frames) if frames else site.stack] if site.stack else 0
            key = (first, *site.key[1:])
            if key not in places:
                places[key] = Place(site, first if main_frame(frames) >= 0 else None, frames)
            places[key].add(site)
        return list(places.values())

    def highest(self, device, layer):
        """Places of a layer of a device, the largest at its peak first."""
        chosen = [place for place in self.places if place.site.device == device.index and place.site.layer == layer
                  and place.peak > 0 and not (place.site.segment and device.top == FRAMEWORK)]
        return sorted(chosen, key=lambda place: (-place.peak, place.site.stack))


def _integer(value):
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _what(frames):
    """What tells two stacks apart; of named native frames not the address."""
    return tuple((f.kind, f.function, f.file, f.line, f.module, f.inlined, f.address if f.function is None else 0)
                 for f in frames)


# ---- as JSON ---------------------------------------------------------------------------------------


def _frame_json(frame):
    out = {"kind": "native" if frame.kind == NATIVE else "python", "function": frame.function, "file": frame.file,
           "line": frame.line or None, "module": frame.module}
    if frame.kind == NATIVE:
        out["address"] = min(frame.address, MOST)  # as far as JSON readers in C go
    if frame.inlined:
        out["inlined"] = True
    return out


def _place_json(figures, place):
    site = place.site
    out = {"kind": SITE_NAMES[site.kind], "layer": LAYER_NAMES[site.layer],
           "device": site.device if site.device >= 0 else None, "owner": site.owner if site.kind == CALL else None,
           "api": figures.label(site.label) if site.kind == CALL else None, "segment": site.segment,
           "allocs": place.allocs, "frees": place.frees, "failed": place.failed, "bytes": place.bytes,
           "peak_bytes": place.peak, "peak_count": place.peak_count, "end_bytes": place.live, "end_count": place.count,
           "frames": [_frame_json(frame) for frame in place.frames if frame.kind != NOTE]}
    if place.stack is not None:
        out["stack"] = place.stack
    return out


def _device_json(figures, device):
    fold, row = figures.fold, figures.trace.devices.get(device.index)
    reserved, backed, allocated = device.reserved(), device.backed(), device.layers[FRAMEWORK].live
    end = {"managed_bytes": device.managed}
    if not fold.lossy:
        end.update(host_pinned_bytes=fold.host_pinned, host_pinned_requested_bytes=fold.host_requested)
    if not device.framework_seen:
        allocated = 0
    end["allocated_bytes"] = allocated
    if not device.shared_pool:
        end.update(reserved_bytes=reserved, cached_bytes=reserved - allocated)
    if not fold.lossy and not device.shared_pool:
        end.update(backed_bytes=backed, unbacked_bytes=reserved - backed)
    peak, total = {"layer": LAYER_NAMES[device.top]}, device.layers[device.top]
    if figures.peak_known(device):
        peak["allocated_bytes"] = total.peak
        if total.peak:
            peak["allocated_at_ns"] = figures.at(total.peak_ns)
    if not device.shared_pool:
        peak["reserved_bytes"] = device.reserved_peak
    if device.framework_seen and not device.shared_pool:
        peak["reserved_at_ns"] = figures.at(device.reserved_peak_ns)
    if figures.used_known(device):
        peak.update(device_bytes=device.used_peak, device_at_ns=figures.at(device.used_peak_ns),
                    device_measured=device.peak_is_measured)
        if not device.open:
            end.update(device_bytes=device.used, other_process_bytes=device.other_bytes)
    out = {"index": device.index, "peak": peak, "end": end}
    if device.total_bytes:
        out["total_bytes"] = device.total_bytes
    if row and row[6]:
        out["name"] = row[6].decode("utf-8", "replace")
    if device.context_ns is not None:
        out["context_created"] = {"at_ns": figures.at(device.context_ns), "api": figures.label(device.context_label)}
    if device.reported:
        out["framework"] = {"reported_allocated_bytes": device.reported_allocated,
                            "reported_reserved_bytes": device.reported_reserved}
    if device.why_not:
        out["device_bytes_left_out"] = device.why_not
    return out


def _failure_json(figures, key, failure):
    label, kind, result = key
    return {"api": figures.label(label), "kind": k.NAME.get(kind), "error": error_name(figures.fold.string(label), result),
            "count": failure["count"], "first_ns": figures.at(failure["first_ns"]),
            "last_ns": figures.at(failure["last_ns"])}


def report_json(figures):
    """Fields of vramscope-report/1 that this reader computes; the others are not there."""
    trace, fold, cut = figures.trace, figures.fold, {}
    if fold.gaps:
        cut["cut"] = {"events": sum(gap[0] for gap in fold.gaps), "gap_count": len(fold.gaps),
                      "gaps": [{"events": events, "from_ns": figures.at(start), "to_ns": figures.at(end)}
                               for events, start, end in fold.gaps[:GAPS_KEPT]]}
    process = {name: value for name, value in trace.facts.get("process", {}).items()
               if name in ("pid", "host_pid", "parent_pid", "exe", "title", "title_end", "host", "boot_id", "rank",
                           "local_rank", "world_size", "job_id", "driver_version", "runtime_versions", "settings")}
    return {
        "schema": "vramscope-report/1", "reader": "python", "left_out": figures.left_out,
        "trace": {"file": trace.path, "format_version": 1, "bytes": trace.bytes, "events": fold.events,
                  "lost": fold.lost, "torn": fold.torn, "complete": figures.complete, "ended": figures.ended,
                  "exit_code": figures.exit_code, "signal": figures.signal, "duration_ns": figures.duration_ns,
                  **cut},
        "process": process,
        "hooks": {"driver_events": fold.driver_events, "runtime_events": fold.runtime_events,
                  "framework_events": fold.framework_events},
        "devices": [_device_json(figures, device) for device in figures.devices()],
        "sites": [_place_json(figures, place) for place in figures.places if figures.knows(place.site)],
        "out_of_memory_events": {"framework": fold.oom_count, "driver": fold.driver_ooms},
        "failures": [_failure_json(figures, key, failure) for key, failure in fold.failures.items()],
    }
