# SPDX-License-Identifier: Apache-2.0
"""The fold: events in, what is live on every device after each of them out, by docs/numbers.md. Memory
is bounded by what is live. Figures that rest on measurements are kept only as far as they are exact."""
from collections import deque
from itertools import islice

from . import kinds as k
from .fold_memory import Memory
from .fold_pools import Pools
from .fold_vmm import Vmm
from .owners import is_bridge, is_framework, layer_of_call, owner_behind, owner_of, takes_segments
from .stacks import Stacks
from .trace import UNKNOWN_64

FRAMEWORK, DRIVER, HOST = range(3)
LAYER_NAMES = ("framework", "driver", "host")
CALL, BEFORE_RECORDING, UNCERTAIN = range(3)
SITE_NAMES = ("call", "before_recording", "uncertain")
MOST = (1 << 63) - 1
PAGE = 2 << 20
UNDO_KEPT, REPEATED_WITHIN = 1024, 64

# Calls after which the device has more or less free.
MOVES = {k.NUMBER[name] for name in (
    "alloc free pool_alloc pool_destroy pool_trim phys_create phys_release unmap array_create array_destroy "
    "context_create context_destroy context_retain context_release context_reset module_load module_unload "
    "graph_instantiate graph_exec_destroy graph_launch graph_upload graph_trim limit_set stream_create "
    "stream_destroy").split()}
REQUESTS = {k.NUMBER[name]: layer for layer, names in (
    (DRIVER, "alloc pool_alloc reserve phys_create map array_create"), (HOST, "host_alloc host_register"),
    (FRAMEWORK, "fw_oom")) for name in names.split()}
CONTEXTS = {k.NUMBER[name] for name in
            "context_create context_destroy context_retain context_release context_reset".split()}
COMMUNICATORS = {k.NUMBER[name] for name in ("comm_begin", "comm_create", "comm_destroy")}


def round_up(value, step):
    return (value + step - 1) // step * step


class Total:
    """Bytes live in one layer, and the most there ever were."""

    def __init__(self):
        self.live = self.peak = self.peak_ns = self.epoch = 0


class Site:
    """Where memory is asked for; what its calls came to. `peak` is of its layer's highest moment."""

    __slots__ = ("key", "stack", "owner", "label", "device", "layer", "kind", "segment", "allocs", "frees",
                 "failed", "bytes", "live", "count", "peak", "peak_count", "epoch")

    def __init__(self, key):
        self.key = key
        self.stack, self.owner, self.label, self.device, self.layer, self.kind, self.segment = key
        self.allocs = self.frees = self.failed = self.bytes = self.live = self.count = 0
        self.peak = self.peak_count = self.epoch = 0

    def settle(self, epoch):
        """Its bytes at a peak are those it still has when it changes for the first time after it."""
        if self.epoch != epoch:
            self.epoch, self.peak, self.peak_count = epoch, self.live, self.count


class Device:
    def __init__(self, index):
        self.index = index
        self.total_bytes = 0
        self.layers = (Total(), Total(), Total())
        # the framework's
        self.framework = self.framework_seen = self.reported = False
        self.cut_allocated = None  # what the framework held by the events, at its latest report in a gap
        self.framework_owner, self.layer, self.framework_events = "unknown", None, 0
        self.reported_allocated = self.reported_reserved = 0
        self.segment_bytes = self.segment_backed = self.unseen_reserved = self.before_recording = 0
        self.pool_reserved = self.pool_used = 0
        self.shared_pool = False  # one that others used before it: what it kept then is not known exactly
        self.reserved_peak = self.reserved_peak_ns = 0
        # outside of segments
        self.direct_large = self.direct_small = self.physical = self.own_pools = self.managed = 0
        self.direct_asked = self.calls = 0
        # measurements
        self.measured = False
        self.measured_ns = 0
        self.base_used = self.base_own = self.base_others = self.used = 0
        self.used_peak = self.used_peak_ns = 0
        self.peak_is_measured = False
        self.open = 0          # what shows in the next measurement only: contexts that ended, others' moves
        self.why_not = None    # why its use is not known exactly
        self.others, self.other_bytes, self.first_answers = {}, 0, 0
        self.contexts, self.primary, self.retains = set(), 0, 0
        self.context_ns = self.context_label = self.context_site = None
        self.touched = False

    @property
    def top(self):
        return FRAMEWORK if self.framework_seen else DRIVER

    def reserved(self):
        return self.segment_bytes + self.pool_reserved + self.unseen_reserved if self.framework_seen else 0

    def backed(self):
        if not self.framework_seen:
            return 0
        return self.segment_backed + self.pool_reserved + max(self.unseen_reserved, 0)

    def own(self):
        """What this process holds by calls that say so, as the device grants it."""
        return (self.direct_large + round_up(max(self.direct_small, 0), PAGE) + self.physical + self.own_pools +
                self.segment_backed + self.pool_reserved)


class Undo:
    """A call told before it is carried out, with what is needed to take it back."""

    def __init__(self, event):
        self.event = event
        self.what = None  # "allocation", "handle", "ranges", "context"
        self.unknown = self.repeated = False
        self.allocation = self.physical = self.context = None
        self.ranges, self.dropped = [], []


class Fold(Memory, Pools, Vmm):
    """Feed it with event(); `on_change(fold, device)` is called after each for the devices it touched."""

    def __init__(self, trace, on_change=None):
        self.trace, self.on_change = trace, on_change
        self.devices, self.sites, self.owners, self.owners_behind = {}, {}, {}, {}
        self.stacks = Stacks(trace)
        self.touched = []
        self.blocks = {}
        self.undos, self.undo_order = {}, deque()
        self.undone = None
        self.lossy, self.lost, self.torn = False, 0, 0
        self.events = self.driver_events = self.runtime_events = self.framework_events = 0
        self.start_ns = _count(trace.facts.get("clock", {}).get("start"), "monotonic_ns")
        self.in_gap, self.gaps = False, []  # of a cut trace, docs/format.md §13: (events, from, to)
        self.own_pid = _count(trace.facts.get("process"), "host_pid")
        self.now_ns = self.sequence = 0
        self.failures = {}
        self.ooms = []  # of the framework: (time, sequence, event)
        self.oom_count = self.driver_ooms = 0
        self._segment_calls, self._call_layers = {}, {}
        self.start_memory()
        self.start_pools()
        self.start_vmm()
        self.handlers = {**self.memory_handlers(), **self.pool_handlers(), **self.vmm_handlers(),
                         k.NUMBER["fw_alloc"]: self.framework_alloc, k.NUMBER["fw_free"]: self.framework_free,
                         k.NUMBER["other_process"]: self.other_process,
                         k.NUMBER["cut"]: self._cut, k.NUMBER["cut_end"]: self._cut_end}
        for index, row in trace.devices.items():
            self.device(index).total_bytes = row[1]

    # ---- names -------------------------------------------------------------------------------

    def string(self, ident):
        return self.trace.strings.get(ident, "") if ident else ""

    def owner(self, event):
        module, stack = event.module, event.stack
        if module not in self.owners:
            row = self.trace.modules.get(module) if module else None
            self.owners[module] = owner_of(row[6].decode("utf-8", "replace") if row else "")
        owner = self.owners[module]
        if not stack or not is_bridge(owner):
            return owner
        if stack not in self.owners_behind:
            self.owners_behind[stack] = owner_behind(owner, self.stacks.interpreter_frames(stack))
        return self.owners_behind[stack]

    def by_framework(self, event):
        """Whether a caching allocator called."""
        if is_framework(self.owner(event)):
            return True
        label = event.label
        if label not in self._segment_calls:
            self._segment_calls[label] = label != 0 and takes_segments(self.string(label))
        return self._segment_calls[label]

    def _site(self, key):
        site = self.sites.get(key)
        if site is None:
            site = self.sites[key] = Site(key)
        return site

    def site_of(self, event, device, layer, segment):
        return self._site((event.stack, self.owner(event), event.label or event.call, device, layer, CALL,
                           segment))

    def special_site(self, device, layer, kind):
        return self._site((0, "", 0, device, layer, kind, False))

    # ---- devices and moves ---------------------------------------------------------------------

    def device(self, index):
        device = self.devices.get(index)
        if device is None:
            device = self.devices[index] = Device(index)
        if not device.touched:
            device.touched = True
            self.touched.append(device)
        return device

    def move(self, site, size, count):
        if site is None:
            return
        total = self.device(site.device).layers[site.layer]
        site.settle(total.epoch)
        site.live += size
        site.count += count
        if count > 0:
            site.allocs += 1
            site.bytes += size
        elif count < 0:
            site.frees += 1
        total.live += size

    def _failed_request(self, event):
        layer = REQUESTS.get(event.kind)
        if layer is not None:
            segment = layer == DRIVER and self.by_framework(event)
            self.site_of(event, event.device, layer, segment).failed += 1

    # ---- one event --------------------------------------------------------------------------------

    def event(self, event):
        self._count(event)
        self._advance(event)
        self._apply(event)
        self._note_failure(event)
        for device in self.touched:
            device.touched = False
            self._settle(device)
            if self.on_change is not None and device.index >= 0:
                self.on_change(self, device)
        self.touched.clear()

    def _count(self, event):
        self.events += 1
        kind = event.kind
        if kind in (80, 81):
            self.framework_events += 1
        elif k.LAYER.get(kind) in ("D", "H", "O") and kind not in COMMUNICATORS:
            if event.flags & k.RUNTIME:
                self.runtime_events += 1
            else:
                self.driver_events += 1

    def _advance(self, event):
        """Times are for display: they never go backwards here."""
        if self.events == 1 and (self.start_ns == 0 or self.start_ns > event.time):
            self.start_ns = event.time
        self.now_ns = max(self.now_ns, event.time)
        self.sequence = event.sequence

    def _apply(self, event):
        self.undone = None
        kind = event.kind
        if kind == 3:
            self._take_back(event)
        elif event.result == 0:
            device = self.devices.get(event.device)
            if (device is None or not device.measured or event.time >= device.measured_ns or kind not in MOVES or
                    event.flags & k.BEFORE_THE_CALL):
                self._carry_out(event)
            else:  # told late: the measurement has it
                before = device.own()
                self._carry_out(event)
                device.base_own += device.own() - before
        elif kind not in COMMUNICATORS:
            self._failed_request(event)
        if event.free_bytes != UNKNOWN_64 and event.device >= 0 and (
                event.flags & k.FREE_MEASURED or kind in (44, 100)):
            self._measure(event)

    def _carry_out(self, event):
        undo, kind = None, event.kind
        if event.flags & k.BEFORE_THE_CALL or kind == 110:
            undo = self._keep_undo(event)
        if kind in self.handlers:
            self.handlers[kind](event) if kind in (80, 81) else self.handlers[kind](event, undo)
        elif kind == 82:
            self._failed_request(event)
        elif kind == 106:
            self._loss(event)
        elif kind == 107:
            self.torn += 1
        if kind in CONTEXTS and event.device >= 0:
            self._context(self.device(event.device), event, undo)
        elif kind in MOVES and event.device >= 0:
            self.device(event.device)

    def _loss(self, event):
        self.lost += event.extra0
        self.lossy = True
        self.device(event.device)
        for device in self.devices.values():
            device.why_not = "events were lost"

    def _note_failure(self, event):
        result = event.result
        if event.kind == 82:
            self.oom_count += 1
            self.ooms.append((self.now_ns, event.sequence, event))
            del self.ooms[:-40]
        if result == 0:
            return
        if event.kind == 3:
            event = self.undone
        if event is None:
            return
        if result == k.OUT_OF_MEMORY and event.kind in REQUESTS:
            self.driver_ooms += 1
        if result in (k.OUT_OF_MEMORY, k.SHUT_DOWN, k.NOT_READY) or event.kind in (49, 50, 51, 58) or \
                k.LAYER.get(event.kind) not in ("D", "H", "O"):
            return
        label = event.label or event.call
        failure = self.failures.get((label, event.kind, result))
        if failure is None:
            layer = HOST if k.LAYER[event.kind] == "H" else DRIVER
            failure = self.failures[label, event.kind, result] = \
                {"count": 0, "first_ns": self.now_ns, "site": self.site_of(event, event.device, layer, False)}
        failure["count"] += 1
        failure["last_ns"] = self.now_ns

    # ---- after every event ---------------------------------------------------------------------------

    def _settle(self, device):
        for total in device.layers:
            if total.live > total.peak:
                total.peak, total.peak_ns = total.live, self.now_ns
                total.epoch += 1
        reserved = device.reserved()
        if reserved > device.reserved_peak:
            device.reserved_peak, device.reserved_peak_ns = reserved, self.now_ns
        if device.measured:
            self._settle_used(device)

    def _settle_used(self, device):
        moved = device.own() - device.base_own + device.other_bytes - device.base_others
        device.used = device.base_used + moved
        if device.open:
            # What the context took with it is not known: at most this was in use.
            if device.used + device.calls * PAGE > device.used_peak:
                device.why_not = device.why_not or "a context ended, or another process moved memory"
        elif device.used > device.used_peak:
            device.used_peak, device.used_peak_ns = device.used, self.now_ns
            device.peak_is_measured = moved == 0

    def _measure(self, event):
        device = self.device(event.device)
        own_question = event.kind == 44
        begin = max(event.time - event.duration, 0) if own_question else event.time
        if device.measured and begin < device.measured_ns:
            return
        if event.kind in (44, 100) and event.size:
            device.total_bytes = event.size
        if not event.free_bytes <= device.total_bytes <= MOST:
            return
        device.measured, device.measured_ns, device.open = True, begin, 0
        device.base_used = device.total_bytes - event.free_bytes
        device.base_own, device.base_others = device.own(), device.other_bytes

    def other_process(self, event, _undo):
        if event.size > MOST:
            return
        device = self.device(event.device)
        if event.handle == 0:
            device.first_answers = event.size if device.measured else 0
            return
        if event.handle == self.own_pid:
            return
        change = event.size - device.others.get(event.handle, 0)
        device.other_bytes += change
        device.others[event.handle] = event.size
        if device.first_answers > 0:  # it was there before the first measurement
            device.first_answers -= 1
            device.base_others += change
        elif device.measured and change != 0:  # the last measurement may have seen it already
            device.open += 1
        if event.size == 0:
            del device.others[event.handle]

    # ---- contexts ---------------------------------------------------------------------------------------

    def _context(self, device, event, undo):
        name = k.NAME[event.kind]
        if name in ("context_create", "context_retain"):
            if device.context_ns is None:
                device.context_ns, device.context_label = self.now_ns, event.label or event.call
                device.context_site = self.site_of(event, event.device, DRIVER, False)
            if name == "context_retain":
                device.retains += 1
                device.primary = event.context
            if event.context:
                device.contexts.add(event.context)
        elif name == "context_destroy":
            if event.context:
                self._keep_context(undo, device, event.context)
                self._end_context(device, event.context, False, undo)
        else:
            self._keep_context(undo, device, device.primary)
            if name == "context_release" and device.retains != 1:
                device.retains -= device.retains > 1
                return
            device.retains = 0
            self._end_context(device, device.primary, True, undo)

    @staticmethod
    def _keep_context(undo, device, context):
        if undo is not None:
            undo.what = "context"
            undo.context = (context, device.measured_ns, device.retains, False)

    def _end_context(self, device, context, pools, undo):
        self.drop_memory(device.index, context, pools, undo)
        if pools:
            self.drop_pools(device.index, undo)
        if device.measured:
            device.open += 1
            if undo is not None:
                undo.context = (*undo.context[:3], True)
        device.contexts.discard(context)

    def _restore_context(self, undo):
        device = self.device(undo.event.device)
        context, measured_ns, retains, opened = undo.context
        before = device.own()
        self.restore_dropped(undo)
        device.retains = retains
        if device.measured_ns == measured_ns:
            device.open -= opened
        else:  # measured since, with all of it still there
            device.base_own += device.own() - before
        if context:
            device.contexts.add(context)

    # ---- what is taken back --------------------------------------------------------------------------------

    def _keep_undo(self, event):
        undo = Undo(event)
        if len(self.undo_order) == UNDO_KEPT:
            oldest = self.undo_order.popleft()
            if self.undos.get(oldest.event.sequence) is oldest:
                del self.undos[oldest.event.sequence]
        self.undo_order.append(undo)
        self.undos[event.sequence] = undo
        return undo

    def repeats(self, address):
        """A free of what an announced free took already, told again by the call beneath it."""
        for undo in islice(reversed(self.undo_order), REPEATED_WITHIN):
            if undo.what == "allocation" and not undo.repeated and undo.event.flags & k.RUNTIME and \
                    undo.event.address == address:
                undo.repeated = True
                return True
        return False

    def _take_back(self, event):
        undo = self.undos.get(event.handle)
        if undo is None:
            return
        self.undone = undo.event
        if event.result == k.SHUT_DOWN:
            return
        if undo.what == "allocation" and not undo.repeated:
            self.restore_allocation(undo)
        elif undo.what in ("handle", "ranges"):
            self.restore_vmm(undo)
        elif undo.what == "context":
            self._restore_context(undo)
        undo.what, undo.unknown = None, False

    # ---- a framework's blocks ----------------------------------------------------------------------------------

    def _layer_of(self, event):
        if event.call not in self._call_layers:
            self._call_layers[event.call] = layer_of_call(self.string(event.call)) if event.call else None
        return self._call_layers[event.call]

    def _place(self, event):
        """Where the block's layer does not say which device it is on, the memory it lies in does."""
        layer = self._layer_of(event)
        if layer is None or not layer[3]:
            return event
        block = self.blocks.get(event.address)
        segment, allocation = self.segments.find(event.address), self.allocations.get(event.address)
        index = (block[2] if block is not None else segment.device if segment is not None
                 else allocation.device if allocation is not None else -1)
        return None if index == -1 else event._replace(device=index)

    def _framework_device(self, event):
        device = self.device(event.device)
        device.framework_events += 1
        if not device.framework_seen:
            device.framework_seen = True
            device.framework_owner, device.layer = self.owner(event), self._layer_of(event)
        return device

    def framework_alloc(self, event):
        event = self._place(event)
        if event is None or event.address == 0 or event.size > MOST:
            return
        device = self._framework_device(event)
        known = self.blocks.get(event.address)
        if known is not None:
            self.move(known[1], -known[0], -1)
        site = self.site_of(event, event.device, FRAMEWORK, False)
        self.blocks[event.address] = (event.size, site, event.device)
        self.move(site, event.size, 1)
        if not self._inside(event.address, event.size) and self.segments.find(event.address) is None:
            self._promote(device, event)
        self._compare_totals(device, event)

    def framework_free(self, event):
        event = self._place(event)
        if event is None or event.address == 0 or event.size > MOST:
            return
        device = self._framework_device(event)
        known = self.blocks.pop(event.address, None)
        if known is not None:
            self.move(known[1], -known[0], -1)
        else:
            kind = UNCERTAIN
            if not device.reported or device.before_recording >= event.size:
                kind = BEFORE_RECORDING
                device.before_recording -= event.size if device.reported else 0
            self.move(self.special_site(device.index, FRAMEWORK, kind), -event.size, 0)
        self._compare_totals(device, event)

    def _inside(self, address, size):
        """Whether segments, one behind the other, hold the whole block."""
        at = self.segments.find(address)
        while at is not None and at.end - address < size:
            size -= at.end - address
            address = at.end
            at = self.segments.find(address)
        return at is not None

    def _promote(self, device, event):
        """An allocator under the cache got the memory that the block lies in."""
        missing = event.extra1 - device.reserved() if event.extra1 <= MOST else 0
        direct = self.allocations.get(event.address)
        if direct is not None and direct.type == "direct" and not direct.segment:
            self.promote_allocation(event.address, direct, missing if 0 < missing <= direct.size else direct.size)
        else:
            self.promote_mapping(device, event.address, missing)

    def _compare_totals(self, device, event):
        """The framework's own totals are right: ours are set to them."""
        if event.extra0 > MOST or event.extra1 > MOST:
            return
        allocated = event.extra0 - device.layers[FRAMEWORK].live
        if self.in_gap and device.reported:  # blocks that were live here are not in the trace
            device.cut_allocated, allocated = device.layers[FRAMEWORK].live, 0
        reserved = event.extra1 - device.reserved()
        if reserved < 0 and device.reported:
            reserved += self.drop_unmapped(device, -reserved)
        if allocated:
            kind = UNCERTAIN if device.reported else BEFORE_RECORDING
            if not device.reported:
                device.before_recording = allocated
            self.move(self.special_site(device.index, FRAMEWORK, kind), allocated, 0)
        device.unseen_reserved += reserved
        device.reported_allocated, device.reported_reserved, device.reported = event.extra0, event.extra1, True

    def _cut(self, event, _undo):
        self.in_gap = True
        self.gaps.append((event.size, event.time, event.extra0))
        for device in self.devices.values():
            device.cut_allocated = None

    def _cut_end(self, _event, _undo):
        """At a device's last report in the gap nothing is missing: what differs there is not of the cut."""
        self.in_gap = False
        for device in self.devices.values():
            self.device(device.index)
            if device.cut_allocated is not None and device.cut_allocated != device.reported_allocated:
                self.move(self.special_site(device.index, FRAMEWORK, UNCERTAIN),
                          device.reported_allocated - device.cut_allocated, 0)

    def finish(self):
        for site in self.sites.values():
            device = self.devices.get(site.device)
            site.settle(device.layers[site.layer].epoch if device is not None else 0)


def _count(fields, name):
    value = fields.get(name) if isinstance(fields, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
