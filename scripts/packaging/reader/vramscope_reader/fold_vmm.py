# SPDX-License-Identifier: Apache-2.0
"""Ranges of addresses, physical memory, and what is mapped where. Physical memory lives while a handle or
a mapping refers to it. What the framework counts (segments) is kept apart from what backs it."""
from . import kinds as k
from .ranges import Range, Ranges

DRIVER, HOST = 1, 2
MOST, M64 = (1 << 63) - 1, (1 << 64) - 1


class Physical:
    def __init__(self, size, device, ours, host, site):
        self.size, self.device, self.ours, self.host, self.site = size, device, ours, host, site
        self.in_segments = self.mappings = self.handles = 0
        self.live, self.slot, self.serial = False, 0, 0


class Vmm:
    """A part of Fold."""

    def start_vmm(self):
        self.handles = {}  # handle: [physical, references]
        self.physicals, self.spare, self.serial = [], [], 0  # by slot; what is made again keeps its serial
        self.reservations, self.mappings, self.segments = Ranges(), Ranges(), Ranges()

    def vmm_handlers(self):
        number = k.NUMBER
        return {number["reserve"]: self.reserve, number["unreserve"]: self.unreserve,
                number["phys_create"]: self.create, number["phys_import"]: self.create,
                number["multicast_create"]: self.create, number["phys_retain"]: self.retain,
                number["phys_release"]: self.release, number["map"]: self.map, number["unmap"]: self.unmap}

    # ---- physical memory -----------------------------------------------------------------------

    def _count_outside(self, physical, size, sign):
        device = self.device(physical.device)
        if not physical.host:
            device.physical += sign * size

    def _count_physical(self, physical, sign):
        if not physical.ours:
            return
        if physical.host:
            self.host_pinned += sign * physical.size
            self.host_requested += sign * physical.size
        self._count_outside(physical, physical.size - physical.in_segments, sign)
        self.move(physical.site, sign * physical.size, sign)

    def _add_physical(self, physical, serial):
        if self.spare:
            physical.slot = self.spare.pop()
            self.physicals[physical.slot] = physical
        else:
            physical.slot = len(self.physicals)
            self.physicals.append(physical)
        physical.live, physical.serial = True, serial
        self._count_physical(physical, 1)
        return physical

    def _drop_if_unused(self, physical):
        if physical.live and physical.handles == 0 and physical.mappings == 0:
            self._count_physical(physical, -1)
            physical.live = False
            self.spare.append(physical.slot)

    def _revive(self, physical):
        """What a kept reference stands for: itself if it still lives, else made again."""
        if physical is None:
            return None
        there = self.physicals[physical.slot]
        if there.live and there.serial == physical.serial:
            return there
        again = Physical(physical.size, physical.device, physical.ours, physical.host, physical.site)
        return self._add_physical(again, physical.serial)

    def _refer(self, handle, physical):
        known = self.handles.setdefault(handle, [physical, 0])
        if known[1] and known[0] is not physical:  # it stood for something else, whose release was not seen
            before = known[0]
            before.handles -= known[1]
            known[1] = 0
            self._drop_if_unused(before)
        known[0] = physical
        known[1] += 1
        physical.handles += 1

    def create(self, event, _undo):
        known = self.handles.get(event.handle)
        own = event.kind == k.NUMBER["phys_create"]
        if known is not None and event.kind == k.NUMBER["phys_import"]:
            self._refer(event.handle, known[0])
            return
        if known is not None:  # its release was not seen
            del self.handles[event.handle]
            known[0].handles -= known[1]
            self._drop_if_unused(known[0])
        host = own and event.extra0 != 1
        ours = own and event.size <= MOST
        segment = not host and self.by_framework(event)
        site = self.site_of(event, event.device, HOST if host else DRIVER, segment) if ours else None
        self.serial += 1
        physical = self._add_physical(Physical(event.size, event.device, ours, host, site), self.serial)
        physical.handles = 1
        self.handles[event.handle] = [physical, 1]

    def retain(self, event, _undo):
        known, mapping = self.handles.get(event.handle), self.mappings.find(event.address)
        physical = known[0] if known is not None else mapping.object if mapping is not None else None
        if physical is not None:
            self._refer(event.handle, physical)

    def release(self, event, undo):
        known = self.handles.get(event.handle)
        if known is None:
            return
        physical = known[0]
        if undo is not None:
            undo.what, undo.physical = "handle", physical
        physical.handles -= 1
        known[1] -= 1
        if known[1] == 0:
            del self.handles[event.handle]
        self._drop_if_unused(physical)

    # ---- backing of segments -----------------------------------------------------------------------

    def _attach(self, mapping, segment):
        """A mapping becomes backing of a segment. Memory mapped twice is counted once."""
        physical = mapping.object
        if physical is None or mapping.backed or not physical.ours or physical.host:
            return
        common = min(mapping.end, segment.end) - max(mapping.start, segment.start)
        mapping.backed = min(max(common, 0), physical.size - physical.in_segments)
        self._count_outside(physical, mapping.backed, -1)
        physical.in_segments += mapping.backed
        segment.backed += mapping.backed
        self.device(segment.device).segment_backed += mapping.backed

    def _detach(self, mapping):
        segment = self.segments.overlap(mapping.start, mapping.size)
        if mapping.object is None or not mapping.backed or segment is None:
            return
        mapping.object.in_segments -= mapping.backed
        self._count_outside(mapping.object, mapping.backed, 1)
        segment.backed -= mapping.backed
        self.device(segment.device).segment_backed -= mapping.backed
        mapping.backed = 0

    def _new_segment(self, start, size, kind, counted, device):
        segment = self.segments.insert(Range(start, size, kind=kind, bytes=counted, backed=0, device=device))
        self.device(device).segment_bytes += counted
        return segment

    def drop_segment(self, segment):
        at = segment.start
        while at < segment.end:
            mapping = self.mappings.overlap(at, segment.end - at)
            if mapping is None:
                break
            self._detach(mapping)
            at = mapping.end
        self.device(segment.device).segment_bytes -= segment.bytes
        self.segments.remove(segment)

    # ---- mappings ---------------------------------------------------------------------------------------

    def _add_mapping(self, start, size, physical, device):
        mapping = self.mappings.insert(Range(start, size, object=physical, device=device, backed=0))
        if physical is not None:
            physical.mappings += 1
        segment = self.segments.overlap(start, size)
        if segment is not None:
            self._attach(mapping, segment)

    def _remove_mapping(self, mapping):
        self._detach(mapping)
        self.mappings.remove(mapping)
        if mapping.object is not None:
            mapping.object.mappings -= 1
            self._drop_if_unused(mapping.object)

    def _cut_mapping(self, address):
        """Makes a mapping that goes over an address two."""
        mapping = self.mappings.find(address)
        if mapping is None or mapping.start == address:
            return
        end = mapping.end
        self._detach(mapping)
        mapping.size = address - mapping.start
        segment = self.segments.overlap(mapping.start, mapping.size)
        if segment is not None:
            self._attach(mapping, segment)
        self._add_mapping(address, end - address, mapping.object, mapping.device)

    def _unmap(self, start, size, undo):
        self._cut_mapping(start)
        self._cut_mapping(start + size)
        mapping = self.mappings.overlap(start, size)
        while mapping is not None:
            if undo is not None:
                undo.what = "ranges"
                undo.ranges.append(("mapping", mapping.start, mapping.size, mapping.object, mapping.device))
            self._remove_mapping(mapping)
            mapping = self.mappings.overlap(start, size)

    def _drop_segments(self, start, size, kinds, undo):
        segment = self.segments.overlap(start, size)
        while segment is not None and segment.start < start + size:
            following = segment.end
            if segment.kind in kinds:
                if undo is not None:
                    undo.what = "ranges"
                    undo.ranges.append(("segment", segment.start, segment.size, segment.kind, segment.bytes,
                                        segment.device))
                self.drop_segment(segment)
            segment = self.segments.next_from(following)

    @staticmethod
    def _is_sane(event):
        return event.size != 0 and event.address + event.size <= M64

    def map(self, event, _undo):
        if not self._is_sane(event):
            return
        known = self.handles.get(event.handle)
        physical = known[0] if known is not None else None
        self._unmap(event.address, event.size, None)
        device = physical.device if physical is not None else event.device
        if physical is not None and physical.ours and not physical.host and self.by_framework(event) and \
                self.segments.overlap(event.address, event.size) is None:
            self.device(device).framework_owner = self.owner(event)
            self._new_segment(event.address, event.size, "piece", event.size, device)
        self._add_mapping(event.address, event.size, physical, device)

    def unmap(self, event, undo):
        if not self._is_sane(event):
            return
        self._unmap(event.address, event.size, undo)
        # The framework gives a piece back. Anybody else only takes the memory from behind it.
        if self.by_framework(event):
            self._drop_segments(event.address, event.size, ("piece",), undo)

    # ---- reservations --------------------------------------------------------------------------------------

    def reserve(self, event, _undo):
        if not self._is_sane(event):
            return
        old = self.reservations.overlap(event.address, event.size)
        while old is not None:
            self.reservations.remove(old)
            old = self.reservations.overlap(event.address, event.size)
        self.reservations.insert(Range(event.address, event.size))

    def unreserve(self, event, undo):
        if not self._is_sane(event):
            return
        kept = self.reservations.find(event.address)
        if kept is None:
            return
        if undo is not None:
            undo.what = "ranges"
            undo.ranges.append(("reservation", kept.start, kept.size))
        self._drop_segments(kept.start, kept.size, ("piece", "reserved"), undo)
        self.reservations.remove(kept)

    def drop_unmapped(self, device, most):
        """Drops segments under which everything was unmapped, at most so many bytes. Returns how many."""
        dropped = 0
        for segment in self.segments:
            if dropped >= most:
                break
            if segment.kind == "reserved" and segment.device == device.index and segment.backed == 0 and \
                    segment.bytes <= most - dropped and \
                    not any(segment.start <= address < segment.end for address in self.blocks):
                dropped += segment.bytes
                self.drop_segment(segment)
        return dropped

    def promote_mapping(self, device, address, missing):
        """Makes a segment of the mapped range around a block that lies in none."""
        mapping = self.mappings.find(address)
        if mapping is None or mapping.object is None:
            return
        around = self.reservations.find(address) or mapping
        # It begins with its first block and is as long as the framework's total grew.
        start, size = address, max(missing, 0)
        if size == 0 or around.end - start < size:
            start, size = mapping.start, mapping.size
        if self.segments.overlap(start, size) is not None:
            return
        segment, end = self._new_segment(start, size, "reserved", size, device.index), start + size
        while start < end:
            inside = self.mappings.overlap(start, end - start)
            if inside is None:
                break
            self._attach(inside, segment)
            start = inside.end

    # ---- what is taken back ------------------------------------------------------------------------------------

    def restore_vmm(self, undo):
        if undo.what == "handle":
            self._refer(undo.event.handle, self._revive(undo.physical))
            return
        for kept in sorted(undo.ranges, key=lambda one: one[0] == "mapping"):
            what, start, size = kept[:3]
            table = {"mapping": self.mappings, "segment": self.segments, "reservation": self.reservations}[what]
            if table.overlap(start, size) is not None:
                continue
            if what == "mapping":
                self._add_mapping(start, size, self._revive(kept[3]), kept[4])
            elif what == "segment":
                self._new_segment(start, size, *kept[3:])
            else:
                table.insert(Range(start, size))
