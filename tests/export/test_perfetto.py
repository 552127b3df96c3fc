#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The perfetto export, decoded strictly with the official schema (PyPI: perfetto), against
the timeline, the events and the report: test_perfetto.py --vramscope P --mktrace P. Runs itself
with the python of scripts/perfetto-env (VRAMSCOPE_PERFETTO_PYTHON); exit 77 without one."""

import json
import os
import sys

try:
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema
except ImportError:
    OTHER = os.environ.pop("VRAMSCOPE_PERFETTO_PYTHON", None)
    if OTHER is None:
        print("Perfetto's schema is not here: VRAMSCOPE_PERFETTO_PYTHON=$(scripts/perfetto-env)")
        sys.exit(77)
    os.execv(OTHER, [OTHER, *sys.argv])

import lab

RUN = """
meta process {"pid":5,"exe":"/opt/train"}
meta clock {"start":{"monotonic_ns":1000000000,"boot_ns":1500000000,"real_ns":1700000000000000000}}
device 0 16G Simulated
device 1 16G Simulated
code 1 10 train | /home/u/train.py
code 2 1 <module> | /home/u/train.py
stack 1 py:1:20 py:2:31
stack 2 py:1:21 py:2:31
phase_begin dev=-1 text=load
alloc dev=0 call=cuMemAlloc_v2 addr=0x700000000 size=6M stack=1 dur=400000
phase_begin dev=-1 text=inner
step dev=-1 size=1
alloc dev=0 call=cuMemAlloc_v2 addr=0x710000000 size=1M stack=2
free dev=0 call=cuMemFree_v2 addr=0x700000000
phase_end dev=-1
step dev=-1 size=2
alloc dev=1 call=cuMemAlloc_v2 addr=0x820000000 size=2M stack=1 dur=150000
alloc dev=0 call=cuMemAlloc_v2 size=9G stack=1 res=2
free dev=1 call=cuMemFree_v2 addr=0x123000 res=1
phase_end dev=-1
phase_begin dev=-1 text=open
step dev=-1 size=3
alloc dev=0 call=cuMemAlloc_v2 addr=0x720000000 size=4M stack=2
process_end dev=-1 handle=1
"""
MIB = 1 << 20
EVENT = schema.TrackEvent


class Decoded:
    """A trace, with what every reader relies on checked."""

    def __init__(self, data):
        trace = schema.Trace()
        trace.ParseFromString(data)
        assert trace.SerializeToString() == data or trace.ByteSize() == len(data)
        self.packets = trace.packet
        for packet in self.packets:
            self.no_unknown(packet)
        self.tables = {name: {} for name in (
            "function_names", "source_paths", "mapping_paths", "build_ids", "mappings", "frames",
            "callstacks")}
        self.tracks, self.events, self.heap, self.attributes = {}, [], [], {}
        self.indices, self.clocks = [], {}
        first = self.packets[0]
        assert first.sequence_flags == schema.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
        assert first.first_packet_on_sequence
        assert first.trace_packet_defaults.timestamp_clock_id == schema.BUILTIN_CLOCK_MONOTONIC
        for packet in self.packets:
            assert packet.trusted_packet_sequence_id == 1
            assert packet is first or packet.sequence_flags == \
                schema.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
            self.take(packet)
        if self.indices:
            assert self.indices == list(range(len(self.indices)))
            assert not self.heap_open

    def no_unknown(self, message):
        """Everything written is in the schema."""
        again = type(message)()
        again.CopyFrom(message)
        again.DiscardUnknownFields()
        assert again.ByteSize() == message.ByteSize(), message

    def take(self, packet):
        if packet.HasField("interned_data"):
            self.intern(packet.interned_data)
        for clock in packet.clock_snapshot.clocks:
            self.clocks[clock.clock_id] = clock.timestamp
        for attribute in packet.trace_attributes.attribute:
            self.attributes[attribute.key] = attribute.string_value
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            assert track.uuid not in self.tracks
            assert not track.parent_uuid or track.parent_uuid in self.tracks
            self.tracks[track.uuid] = track
        if packet.HasField("track_event"):
            event = packet.track_event
            assert packet.HasField("timestamp") and event.track_uuid in self.tracks
            if event.HasField("callstack_iid"):
                self.stack(event.callstack_iid)
            self.events.append((packet.timestamp, event))
        if packet.HasField("profile_packet"):
            profile = packet.profile_packet
            self.indices.append(profile.index)
            self.heap_open = profile.continued
            for dump in profile.process_dumps:
                for sample in dump.samples:
                    self.heap.append((dump, sample, self.stack(sample.callstack_id)))

    def intern(self, data):
        for name, table in self.tables.items():
            for entry in getattr(data, name):
                assert entry.iid != 0 and entry.iid not in table, (name, entry.iid)
                table[entry.iid] = entry
        for mapping in data.mappings:
            assert all(path in self.tables["mapping_paths"] for path in mapping.path_string_ids)
            assert not mapping.build_id or mapping.build_id in self.tables["build_ids"]
        for frame in data.frames:
            assert frame.mapping_id in self.tables["mappings"]
            assert frame.function_name_id in self.tables["function_names"]
            assert not frame.source_path_iid or frame.source_path_iid in self.tables["source_paths"]
        for stack in data.callstacks:
            assert stack.frame_ids and all(one in self.tables["frames"] for one in stack.frame_ids)

    def stack(self, iid):
        """As a folded stack has it."""
        return ";".join(
            self.tables["function_names"][self.tables["frames"][one].function_name_id].str.decode()
            for one in self.tables["callstacks"][iid].frame_ids)

    def counters(self):
        """{(device, column): [(time, value)]}"""
        found = {}
        for time, event in self.events:
            if event.type == EVENT.TYPE_COUNTER:
                track = self.tracks[event.track_uuid]
                assert track.counter.unit == schema.CounterDescriptor.UNIT_SIZE_BYTES
                _, device, column = track.name.split(" ")
                found.setdefault((int(device), column), []).append((time, event.counter_value))
        return found

    def slices(self):
        """[(track name, name, begin, end)], each track's nested and in order."""
        found, open_slices, last = [], {}, {}
        for time, event in self.events:
            if event.type not in (EVENT.TYPE_SLICE_BEGIN, EVENT.TYPE_SLICE_END):
                continue
            assert time >= last.get(event.track_uuid, 0)
            last[event.track_uuid] = time
            stack = open_slices.setdefault(event.track_uuid, [])
            if event.type == EVENT.TYPE_SLICE_BEGIN:
                stack.append((event.name, time))
            else:
                name, begun = stack.pop()
                found.append((self.tracks[event.track_uuid].name or "thread", name, begun, time))
        assert not any(open_slices.values())
        return found

    def instants(self, category):
        return [(time, event) for time, event in self.events
                if event.type == EVENT.TYPE_INSTANT and category in event.categories]


def decode(here, trace, *options):
    return Decoded(here.export("perfetto", trace, *options))


def changes_of(rows, start):
    """What changed in the timeline, as counters tell it."""
    found = {}
    for row in rows:
        for column, value in row.items():
            if column in ("time_ns", "device") or value is None:
                continue
            changes = found.setdefault((row["device"], column), [])
            if not changes or changes[-1][1] != value:
                changes.append((row["time_ns"] + start, value))
    return found


def start_of(here, trace):
    return json.loads(here.export("json", trace).splitlines()[0])["start_ns"]


def test_against_timeline_and_report(here):
    seen = {"counters": 0, "failures": 0, "ooms": 0, "heap": 0}
    for trace in here.traces():
        got, report = decode(here, trace), here.json("report", "--json", trace)
        start = start_of(here, trace)
        rows = here.json("timeline", "--json", trace)["rows"]
        counters = got.counters()
        assert counters == changes_of(rows, start), trace
        for device in report["devices"]:
            reserved = [value for _, value in counters.get((device["index"], "reserved_bytes"), [])]
            assert not reserved or max(reserved) == device["peak"]["reserved_bytes"], trace
        end = start + report["trace"]["duration_ns"]
        assert all(start <= time <= end for time, _ in got.events), trace
        got.slices()
        failures = got.instants("failure")
        assert len(failures) == sum(one["count"] for one in report["failures"]), trace
        assert [time - start for time, _ in got.instants("out_of_memory")] == [
            one["at_ns"] for one in report["ooms"]], trace
        in_use = sum(one.self_allocated - one.self_freed for _, one, _ in got.heap)
        assert in_use == sum(device["peak"]["allocated_bytes"] for device in report["devices"])
        seen["counters"] += len(counters)
        seen["failures"] += len(failures)
        seen["ooms"] += len(report["ooms"])
        seen["heap"] += len(got.heap)
    assert all(seen.values()), seen


def test_slices_and_instants(here):
    trace = here.trace("run", RUN)
    got = decode(here, trace)
    assert got.clocks == {schema.BUILTIN_CLOCK_MONOTONIC: 1000000000,
                          schema.BUILTIN_CLOCK_MONOTONIC_COARSE: 1000000000,
                          schema.BUILTIN_CLOCK_BOOTTIME: 1500000000,
                          schema.BUILTIN_CLOCK_REALTIME: 1700000000000000000}
    assert got.tracks[1].process.pid == 5 and got.tracks[1].process.process_name == "/opt/train"
    slices = got.slices()
    calls = [(name, end - begin) for track, name, begin, end in slices if track == "thread"]
    assert calls == [("cuMemAlloc_v2", 400000), ("cuMemAlloc_v2", 150000)]
    assert [name for track, name, _, _ in slices if track == "phases"] == ["inner", "load", "open"]
    assert [name for track, name, _, _ in slices if track == "steps"] == [
        "step 1", "step 2", "step 3"]
    (_, oom), = got.instants("out_of_memory")
    notes = {note.name: getattr(note, note.WhichOneof("value")) for note in oom.debug_annotations}
    assert notes["requested_bytes"] == 9 << 30 and notes["device"] == 0 and notes["why"]
    assert got.stack(oom.callstack_iid) == (
        "<module> (/home/u/train.py:31);train (/home/u/train.py:20)")
    (_, failure), = got.instants("failure")
    assert failure.name == "cuMemFree_v2"


def test_heap_is_the_folded(here):
    trace = here.trace("run", RUN)
    for options in ((), ("--at", "end"), ("--at", "oom"), ("--min-bytes", "2M")):
        for device in ("0",) if "oom" in options else ("0", "1"):
            folded = {}
            for line in here.export("folded", trace, "--device", device,
                                    *options).decode().splitlines():
                if not line.startswith("#"):
                    stack, value = line.rsplit(" ", 1)
                    folded[stack] = int(value)
            got = {stack: sample.self_allocated - sample.self_freed
                   for dump, sample, stack in decode(here, trace, "--device", device, *options).heap
                   if dump.heap_name == f"GPU {device} driver"}
            assert {stack: value for stack, value in got.items() if value} == folded, options


def test_filters(here):
    trace = here.trace("run", RUN)
    start = start_of(here, trace)
    whole = decode(here, trace)
    assert "vramscope.only" not in whole.attributes and not whole.instants("vramscope")
    got = decode(here, trace, "--from", "5ms", "--to", "10ms", "--device", "0")
    said = "from 5000000 ns, to 10000000 ns, device 0"
    assert got.attributes["vramscope.only"] == said
    assert [event.name for _, event in got.instants("vramscope")] == [
        f"vramscope export: only: {said}"]
    times = [time - start for time, _ in got.events]
    assert min(times) == 5000000 and max(times) <= 10000000
    assert {device for device, _ in got.counters()} == {0}
    # What held when the window begins is its first value; what was under way is open from there.
    before = [value for time, value in whole.counters()[(0, "live_bytes")]
              if time - start < 5000000][-1]
    assert got.counters()[(0, "live_bytes")][0] == (start + 5000000, before)
    slices = [(name, begin - start) for track, name, begin, _ in got.slices() if track == "phases"]
    assert ("load", 5000000) in slices
    refused = here.run("export", "-f", "perfetto", "-o", "-", "--last", "3", trace, status=1)
    assert b"--last is for formats that list events" in refused.stderr


lab.main([test for name, test in sorted(globals().items()) if name.startswith("test_")])
