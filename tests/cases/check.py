#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plays out-of-memory cases of real PyTorch on the simulated device: each has one entry
of the expected class, at its line, with its figures; its healthy twin has none.

usage: check.py --bin DIR --simgpu SCRIPT [--python PYTHON]
Exit status: 0 as expected, 1 not, 77 no PyTorch here.
"""
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "torch"))
import real_torch  # noqa: E402

MIB = 1 << 20
PROGRAM = pathlib.Path(__file__).resolve().parent / "programs" / "torch_cases.py"
# Case and class: bytes asked for, the largest free block, cached, and what `why` names.
EXPECTED = {
    "pinned_segment": (3200, 1880, 2880, ["120 MiB in 10 live blocks", "2.93 GiB"]),
    "fragmented": (1200, 500, 1500, ["1.46 GiB", "500 MiB", "1.17 GiB"]),
    "other_stream": (2000, 2984, 2984, ["on stream 0x0;", "2.91 GiB", "for stream 0x"]),
    "limit": (800, None, 0, ["800 MiB", "no driver call failed", "500 MiB"]),
    "request_exceeds_device": (5000, None, None, ["4.88 GiB", "4.00 GiB"]),
    "full": (1000, None, 0, ["1000 MiB", "2.93 GiB", "4.00 GiB"]),
}


def run_traced(arguments, folder):
    """What each case printed, and its report."""
    cases = [words for name in (*EXPECTED, "repaired") for words in (name, f"{name} healthy")]
    printed = real_torch.run_programs(arguments, folder, "4G", PROGRAM, cases)
    reports = real_torch.reports_of(arguments, folder)
    return {line["case"]: (line["failed"], line["told"], reports[line["pid"]])
            for line in map(json.loads, printed.splitlines()) if line["pid"] in reports}


def line_of(name, mark=None):
    for number, text in enumerate(PROGRAM.read_text().splitlines(), 1):
        if text.endswith(f"# {mark or f'FAILS {name}'}"):
            return number
    raise SystemExit(f"no line is marked {name}")


def faults_of_oom(oom, wanted, named):
    """Fields of an entry that are not as wanted, and texts that its `why` does not name."""
    faults = [f"{field} is {oom[field]}, not {value}: {oom['why']}"
              for field, value in wanted.items() if oom[field] != value]
    return faults + [f"{text!r} is not in {oom['why']!r}" for text in named if text not in oom["why"]]


def faults_of_repair(failed, told, report):
    """PyTorch's own count of retries, and what its reserve lost, are the oracle."""
    entries = [(oom["repaired"], oom["handled"], oom["requested_bytes"], oom["given_back_bytes"])
               for oom in report["ooms"]]
    wanted = [(True, True, 3000 * MIB, told["given_back"])] * told["retries"]
    faults = [] if not failed and entries == wanted and told["retries"] == 1 else [
        f"failed: {failed}, entries: {entries}, not {wanted}"]
    return faults + [f"lost_ns is {oom['lost_ns']}" for oom in report["ooms"]
                     if not 0 < oom["lost_ns"] < report["trace"]["duration_ns"]]


def faults_of_pins(report, oom):
    """Whose blocks keep the segment, which was free as a whole before."""
    pinned, pins = oom["fragmentation"]["pinned_segments"], line_of("pinned_segment", "PINS")
    if len(pinned) != 1:
        return [f"{len(pinned)} segments are pinned"]
    wanted = {"bytes": 3000 * MIB, "live_bytes": 120 * MIB, "live_count": 10, "held_bytes": 2880 * MIB}
    faults = [f"{field} of the segment is {pinned[0].get(field)}, not {value}: {pinned[0]}"
              for field, value in wanted.items() if pinned[0].get(field) != value]
    stacks = pinned[0]["stacks"]
    lines = [frame["line"] for site in report["sites"] if site["stack"] in stacks for frame in site["frames"]]
    return faults if pins in lines and len(stacks) == 1 else faults + [f"pinned by lines {lines}"]


def faults_of_case(name, failed, _, report):
    requested, largest, cached, named = EXPECTED[name]
    if not failed or len(report["ooms"]) != 1:
        return [f"failed: {failed}, entries: {report['ooms']}"]
    oom = report["ooms"][0]
    wanted = {"class": name, "layer": "framework", "handled": False,
              "requested_bytes": requested * MIB,
              "cached_bytes": None if cached is None else cached * MIB}
    if largest is not None:
        wanted["largest_free_block_bytes"] = largest * MIB
    faults = faults_of_oom(oom, wanted, named)
    if name == "pinned_segment":
        faults += faults_of_pins(report, oom)
    site = next(site for site in report["sites"] if site["stack"] == oom["stack"])
    lines = [frame["line"] for frame in site["frames"] if frame["file"] == str(PROGRAM)]
    if line_of(name) not in lines:
        faults.append(f"at lines {lines}, not {line_of(name)}")
    return faults


def faults_of_twin(failed, _, report):
    loud = [oom for oom in report["ooms"] if not oom["repaired"]]
    return [f"failed: {failed}, entries: {loud}"] if failed or loud else []


def check(arguments):
    with tempfile.TemporaryDirectory(prefix="vramscope-cases-") as folder:
        reports = run_traced(arguments, folder)
    wrong = []
    for name in EXPECTED:
        wrong += [(name, fault) for fault in faults_of_case(name, *reports[name])]
        wrong += [(f"{name} healthy", fault)
                  for fault in faults_of_twin(*reports[f"{name} healthy"])]
    wrong += [("repaired", fault) for fault in faults_of_repair(*reports["repaired"])]
    wrong += [("repaired healthy", fault) for fault in faults_of_twin(*reports["repaired healthy"])]
    return real_torch.tell("WRONG", len(reports), wrong)


if __name__ == "__main__":
    sys.exit(real_torch.run_test(check))
