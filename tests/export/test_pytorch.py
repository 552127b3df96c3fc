#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pytorch, read by Python's pickle and held against dump:
test_pytorch.py --vramscope PROGRAM --mktrace PROGRAM."""

import pickle

import lab
import snapshot_pickle

STATES = {"allocated": "active_allocated", "pending": "active_pending_free", "free": "inactive"}
LIBRARY = "module=/v/torch/lib/libc10_cuda.so"


def snapshot_of(here, trace, *options):
    return snapshot_pickle.load(here.export("pytorch", trace, *options))


def actions(snapshot, device=0):
    return [(entry["action"], entry.get("addr"), entry["size"])
            for entry in snapshot["device_traces"][device]]


def layout(segments):
    return [(s["address"], [(b["address"], b["size"], b["state"]) for b in s["blocks"]])
            for s in segments]


def test_segments_are_the_dumps(here):
    compared = 0
    for script in sorted(lab.SCRIPTS.glob("*.txt")):
        if "fw_alloc" not in script.read_text():
            snapshot_of(here, here.trace(script.stem), "--at", "end")
            continue
        trace = here.trace(script.stem)
        for at in ("peak", "end"):
            snapshot = snapshot_of(here, trace, "--at", at)
            for device in here.lines("dump", "--json", "--segments-at", at, trace):
                mine = [s for s in snapshot["segments"] if s["device"] == device["device"]]
                wanted = [(s["address"], [(b["address"], b["bytes"], STATES[b["state"]])
                                          for b in s["blocks"]]) for s in device["segments"]]
                assert layout(mine) == wanted, (trace, at)
                unsure = device["device"] in snapshot["vramscope"]["uncertain_devices"]
                assert unsure != device["known"]
                compared += len(wanted)
    assert compared > 10


def test_a_program_without_a_framework(here):
    trace = here.trace("driver")
    snapshot = snapshot_of(here, trace, "--at", "end")
    mib = 1 << 20
    assert layout(snapshot["segments"]) == [
        (0x700000000, [(0x700000000, 288 * mib, "active_allocated")]),
        (0x720000000, [(0x720000000, 96 * mib, "active_allocated")])]
    taken = [(action, address, bytes_) for address, bytes_ in
             ((0x700000000, 288 * mib), (0x720000000, 96 * mib), (0x740000000, 512 * mib))
             for action in ("segment_alloc", "alloc")]
    gone = [(action, 0x740000000, 512 * mib)
            for action in ("free_requested", "free_completed", "segment_free")]
    assert actions(snapshot) == taken + gone
    assert actions(snapshot_of(here, trace)) == taken
    assert actions(snapshot_of(here, trace, "--at", "end", "--last", "2")) == gone[1:]


def test_mappings_side_by_side_are_one(here):
    snapshot = snapshot_of(here, here.trace("pieces"), "--at", "end")
    assert actions(snapshot)[0] == ("segment_map", 0x700000000, 40 << 20)
    assert [s["is_expandable"] for s in snapshot["segments"]] == [True]


def test_instants_and_filters(here):
    trace = here.trace("fragmented")
    whole, failed = snapshot_of(here, trace, "--at", "end"), snapshot_of(here, trace, "--at", "oom")
    assert actions(failed)[-1] == ("oom", None, 3 << 30)
    assert failed["device_traces"][0][-1]["device_free"] == 2 << 30
    assert actions(failed) == actions(whole)[:len(actions(failed))] != actions(whole)
    large = snapshot_of(here, trace, "--at", "end", "--min-bytes", "2G")
    assert actions(large) == [entry for entry in actions(whole) if entry[2] >= 2 << 30]
    assert large["segments"] == whole["segments"]
    assert large["vramscope"]["filter"] == f"at least {2 << 30} bytes"
    assert snapshot_of(here, trace, "--device", "3")["segments"] == []
    assert here.run("export", "-f", "pytorch", "-o", "-", "--at", "oom", here.trace("driver"),
                    status=1).stdout == b""


def test_frames_are_the_stacks_and_written_once(here):
    trace = here.trace("stacks")
    data = here.export("pytorch", trace, "--at", "end")
    snapshot = snapshot_pickle.load(data)
    stacks = {line["stack"]: line["frames"]
              for line in here.lines("dump", "--json", "--stacks", trace) if "frames" in line}
    wanted = {tuple((f.get("function"), f.get("line", 0)) for f in frames if f["kind"] != "note")
              for frames in stacks.values()}
    named = {stack for stack in wanted if all(name for name, _ in stack)}
    got = {tuple((f["name"], f["line"]) for f in entry["frames"])
           for entry in snapshot["device_traces"][0] if entry["frames"]}
    assert got & named and len(got) > 2
    frames = {id(f): (f["filename"], f["line"], f["name"])
              for entry in snapshot["device_traces"][0] for f in entry["frames"]}
    assert len(set(frames.values())) == len(frames)
    held = [b["frames"] for s in snapshot["segments"] for b in s["blocks"] if b["state"] != "inactive"]
    assert all(any(stack is entry["frames"] for entry in snapshot["device_traces"][0])
               for stack in held)


def many_blocks(count):
    lines = ["device 0 12G Test GPU", f"alloc label=cudaMalloc call=cuMemAlloc_v2 addr=0x700000000 size=1G {LIBRARY}"]
    for index in range(count):
        lines.append(f"fw_alloc addr={0x700000000 + index * 4096:#x} size=4096 "
                     f"x0={(index + 1) * 4096} x1=1G {LIBRARY}")
    return "\n".join(lines) + "\n"


def test_batches_are_short(here):
    data = here.export("pytorch", here.trace("many", many_blocks(2500)), "--at", "end")
    batches = snapshot_pickle.batches(data)
    assert max(batches) == snapshot_pickle.BATCH
    assert sorted(batches)[-4:] == [1000] * 4
    snapshot = pickle.loads(data)
    assert len(snapshot["device_traces"][0]) == 2501
    assert len(snapshot["segments"][0]["blocks"]) == 2501


lab.main([test for name, test in sorted(globals().items()) if name.startswith("test_")])
