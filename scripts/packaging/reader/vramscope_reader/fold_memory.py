# SPDX-License-Identifier: Apache-2.0
"""Memory that one call gives and one call takes: cuMemAlloc and its kin, managed, pinned and registered
host memory, arrays, memory of other processes and APIs. A free is told before the real call."""
from dataclasses import dataclass, replace
from typing import Any

from . import kinds as k
from .ranges import Range

PAGE, SMALL, SMALL_STEP, HOST_PAGE = 2 << 20, 1 << 20, 512, 4096
DRIVER, HOST = 1, 2


@dataclass
class Allocation:
    size: int
    type: str  # direct managed pool ipc external array host registered
    device: int
    site: Any = None
    context: int = 0
    pool: Any = None
    granted: int = 0  # pool: what the pool counts; ipc: times opened
    owner: str = ""
    segment: bool = False


class Memory:
    """A part of Fold."""

    def start_memory(self):
        self.allocations, self.hosts, self.arrays = {}, {}, {}
        self.graph_addresses = set()
        self.host_pinned = self.host_requested = 0

    def memory_handlers(self):
        number = k.NUMBER
        return {number["alloc"]: self.alloc, number["free"]: self.free, number["pool_free"]: self.free,
                number["ipc_close"]: self.free, number["host_alloc"]: self.host_alloc,
                number["host_register"]: self.host_alloc, number["host_free"]: self.host_free,
                number["host_unregister"]: self.host_free, number["ipc_open"]: self.ipc_open,
                number["external_map"]: self.external_map, number["graph_alloc_node"]: self.graph_node,
                number["array_create"]: self.array, number["array_destroy"]: self.array_free}

    # ---- totals ------------------------------------------------------------------------------

    def count(self, allocation, sign):
        """Counts an allocation in (+1) or out (-1)."""
        device, size, of = self.device(allocation.device), allocation.size, allocation.type
        if of in ("direct", "array"):
            if allocation.segment:
                device.segment_backed += sign * size
            else:
                self._count_direct(device, size, sign)
        elif of == "managed":
            device.managed += sign * size
        elif of == "pool":
            self.count_pool(allocation, sign)
            size = allocation.granted
        elif of in ("host", "registered"):
            self.host_pinned += sign * ((size + HOST_PAGE - 1) // HOST_PAGE * HOST_PAGE)
            self.host_requested += sign * size
        else:
            return
        self.move(allocation.site, sign * size, sign)

    @staticmethod
    def _count_direct(device, size, sign):
        device.calls += 1
        device.direct_asked += sign * size
        step = SMALL_STEP if size < SMALL else PAGE
        rounded = sign * ((size + step - 1) // step * step)
        if size < SMALL:
            device.direct_small += rounded
        else:
            device.direct_large += rounded

    def _add_segment(self, device, address, allocation, counted):
        if self.segments.overlap(address, allocation.size) is not None or address + allocation.size >> 64:
            return
        self.segments.insert(Range(address, allocation.size, bytes=counted, backed=allocation.size,
                                   device=allocation.device, kind="direct"))
        device.segment_bytes += counted

    def promote_allocation(self, address, allocation, counted):
        """A direct allocation turns out to be a segment."""
        device = self.device(allocation.device)
        self._count_direct(device, allocation.size, -1)
        allocation.segment = True
        device.segment_backed += allocation.size
        self._add_segment(device, address, allocation, counted)

    # ---- allocations ------------------------------------------------------------------------------

    def _forget(self, table, key):
        gone = table.pop(key)
        self.count(gone, -1)
        if gone.segment:
            segment = self.segments.find(key)
            if segment is not None and segment.start == key and segment.kind == "direct":
                self.drop_segment(segment)

    def remember(self, table, key, allocation):
        if key in table:  # its free was not seen, or is told later than this
            self._forget(table, key)
        table[key] = allocation
        self.count(allocation, 1)
        if allocation.segment:
            self._add_segment(self.device(allocation.device), key, allocation, allocation.size)

    def _from_event(self, event, of, layer):
        segment = of == "direct" and self.by_framework(event)
        return Allocation(event.size, of, event.device, self.site_of(event, event.device, layer, segment),
                          event.context, owner=self.owner(event), segment=segment)

    def alloc(self, event, _undo):
        if event.address and event.size:
            of = "managed" if event.flags & k.MANAGED else "direct"
            allocation = self._from_event(event, of, DRIVER)
            if allocation.segment:
                self.device(event.device).framework_owner = allocation.owner
            self.remember(self.allocations, event.address, allocation)

    def graph_node(self, event, _undo=None):
        if event.address:
            self.graph_addresses.add(event.address)

    def host_alloc(self, event, _undo):
        if event.address and event.size:
            of = "host" if event.kind == k.NUMBER["host_alloc"] else "registered"
            self.remember(self.hosts, event.address, self._from_event(event, of, HOST))

    def ipc_open(self, event, _undo):
        known = self.allocations.get(event.address)
        if known is not None and known.type == "ipc":
            known.granted += 1
            return
        allocation = self._from_event(event, "ipc", DRIVER)
        allocation.granted = 1
        if event.address:
            self.remember(self.allocations, event.address, allocation)

    def external_map(self, event, _undo):
        allocation = self._from_event(event, "external", DRIVER)
        if event.address:
            self.remember(self.allocations, event.address, allocation)

    def array(self, event, _undo):
        allocation = self._from_event(event, "array", DRIVER)
        if event.handle:
            self.remember(self.arrays, event.handle, allocation)

    # ---- frees ----------------------------------------------------------------------------------------

    def _free_in(self, table, key, undo):
        if key == 0:
            return
        known = table.get(key)
        if known is None:
            if table is not self.allocations or key not in self.graph_addresses:
                if not self.repeats(key) and undo is not None:
                    undo.unknown = True
            return
        if undo is not None:
            undo.what, undo.allocation = "allocation", replace(known)
        if known.type == "ipc" and known.granted > 1:
            known.granted -= 1
        else:
            self._forget(table, key)

    def free(self, event, undo):
        if not event.flags & k.CAPTURING:
            self._free_in(self.allocations, event.address, undo)

    def host_free(self, event, undo):
        self._free_in(self.hosts, event.address, undo)

    def array_free(self, event, undo):
        self._free_in(self.arrays, event.handle, undo)

    def restore_allocation(self, undo):
        event, table, key = undo.event, self.allocations, undo.event.address
        if k.NAME[event.kind] in ("host_free", "host_unregister"):
            table = self.hosts
        elif k.NAME[event.kind] == "array_destroy":
            table, key = self.arrays, event.handle
        known = table.get(key)
        if known is not None and known.type == "ipc":
            known.granted += 1
        elif known is None:
            self.remember(table, key, undo.allocation)

    # ---- the end of a context ----------------------------------------------------------------------------

    def drop_memory(self, device, context, pools, undo):
        """What goes with a context; context 0: all of its device's."""
        for table in (self.allocations, self.hosts, self.arrays):
            for key, one in list(table.items()):
                if one.type == "pool":
                    goes = pools and one.device == device
                else:
                    goes = one.context == context if context else one.device == device
                if goes:
                    if undo is not None:
                        undo.dropped.append((table, key, replace(one)))
                    self._forget(table, key)

    def restore_dropped(self, undo):
        for table, key, one in undo.dropped:
            if table is None:
                self.restore_pool(key, one)
            elif key not in table:
                self.remember(table, key, one)
