#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plays problems that users of PyTorch report on the simulated device: what the trace says of each,
against PyTorch's own statistics, and healthy twins that stay silent.

usage: check_known.py --bin DIR --simgpu SCRIPT [--python PYTHON]
Exit status: 0 as expected, 1 not, 77 no PyTorch here.
"""
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "torch"))
import real_torch  # noqa: E402

MIB = 1 << 20
PROGRAM = pathlib.Path(__file__).resolve().parent / "programs" / "torch_known.py"
# Of the request that failed: class and MiB; None: none fails.
FAILS = {"flushed": None, "optimizer": ("full", 256), "gathered": ("full", 1950),
         "backward": ("full", 3500), "sizes": ("full", 370), "saved": None}

CALLS = {"cuMemAlloc_v2": "device_allocs", "cuMemFree_v2": "device_frees"}


def marked(mark):
    return next(number for number, text in enumerate(PROGRAM.read_text().splitlines(), 1)
                if text.endswith(f"# {mark}"))


def lines_of(site):
    return [frame["line"] for frame in site["frames"] if frame["file"] == str(PROGRAM)]


def unequal(pairs):
    return [f"{what} {ours}, PyTorch says {theirs}" for what, ours, theirs in pairs if ours != theirs]


def figures_faults(line, report):
    device = report["devices"][0]
    repaired = sum(oom["repaired"] for oom in report["ooms"])
    # Inside a capture the cache does not try again.
    retried = line["retries"] - (line["ooms"] if line["case"] != "sizes" else 0)
    attempts = sum(oom["attempt_count"] for oom in report["ooms"])
    return unequal([
        ("allocated", device["end"]["allocated_bytes"], line["allocated"]),
        ("reserved", device["end"]["reserved_bytes"], line["reserved"]),
        ("peak", device["peak"]["allocated_bytes"], line["peak"]),
        ("mismatches", device["framework"]["mismatches"], 0),
        ("requests that failed", len(report["ooms"]) - repaired, line["ooms"]),
        ("requests repaired by a retry", repaired, retried),
        *[(api, call["count"] - (attempts if api == "cuMemAlloc_v2" else 0), line[field])
          for call in report["slow_calls"]  # of those that took long
          for api, field in CALLS.items() if call["api"] == api]])


def failure_faults(name, report):
    loud = [oom for oom in report["ooms"] if not oom["repaired"]]
    if FAILS[name] is None or len(loud) != 1:
        return [f"entries: {loud}"] if loud or FAILS[name] is not None else []
    wanted, found = FAILS[name], (loud[0]["class"], loud[0]["requested_bytes"] // MIB)
    faults = [] if found == wanted else [f"{found}, not {wanted}: {loud[0]['why']}"]
    site = next(site for site in report["sites"] if site["stack"] == loud[0]["stack"])
    if marked(f"FAILS {name}") not in lines_of(site):
        faults.append(f"at lines {lines_of(site)}")
    return faults


def site_at(report, mark):
    """Bytes that were live at the end, of the framework's sites that this line leads to."""
    return sum(site["end_bytes"] for site in report["sites"]
               if site["layer"] == "framework" and marked(mark) in lines_of(site))


def saved_faults(line, report):
    phase = next(phase for phase in report["phases"]
                 if phase["name"] == "save" and phase["band"] == "reserved_bytes")
    counted = line["counted"]
    return unequal([("before the save", phase["entry_bytes"], counted["before"]),
                    ("after it", phase["exit_bytes"], counted["after"]),
                    ("what stays", phase["resident_bytes"], counted["after"] - counted["before"])])


def special_faults(name, line, report):
    if name == "optimizer":
        state = report["devices"][0]["categories"]["at_end"]["optimizer_state"]
        return unequal([("optimizer state", state, line["counted"]["state"])])
    if name == "backward":  # the loss; what its backward made has no line of the program's
        return unequal([("kept of the step that failed", site_at(report, "KEPT"),
                         100 * MIB if line["case"] == name else 0)])
    if name == "sizes":
        live = next(each["live"] for each in report["objects"] if each["kind"] == "graph_exec")
        return unequal([("executable graphs", live, line["counted"]["graphs"])])
    return saved_faults(line, report) if name == "saved" else []


def faults_of(line, report):
    name = line["case"].split()[0]
    faults = figures_faults(line, report) + special_faults(name, line, report)
    faults += [f"grows: {grown}" for grown in report["growth"]]
    healthy = line["case"] != name and name != "backward"  # its twin fails, and keeps nothing
    return faults + (unequal([("entries", report["ooms"], [])]) if healthy
                     else failure_faults(name, report))


def check(arguments):
    wrong, cases = [], [words for name in FAILS for words in (name, f"{name} healthy")]
    with tempfile.TemporaryDirectory(prefix="vramscope-known-") as folder:
        printed = real_torch.run_programs(arguments, folder, "4G", PROGRAM, cases)
        lines = [json.loads(line) for line in printed.splitlines()]
        reports = real_torch.reports_of(arguments, folder)
    for words in cases:
        line = next((line for line in lines if line["case"] == words), None)
        if line is None or line["pid"] not in reports:
            wrong.append((words, "did not end, or has no trace"))
        else:
            wrong += [(words, fault) for fault in faults_of(line, reports[line["pid"]])]
    return real_torch.tell("WRONG", len(cases), wrong)


if __name__ == "__main__":
    sys.exit(real_torch.run_test(check))
