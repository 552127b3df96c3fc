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
         "backward": ("full", 3500), "sizes": ("full", 370), "saved": None, "logged_values": None, "unreleased": None,
         "workspaces": None}

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
    segments = sum(site["end_bytes"] for site in sites_of(report, "SAVES", layer="driver"))
    return unequal([("made for the save", segments, counted["after"] - counted["before"]),
                    ("before the save", phase["entry_bytes"], counted["before"]),
                    ("after it", phase["exit_bytes"], counted["after"]),
                    ("what stays", phase["resident_bytes"], counted["after"] - counted["before"])])


def sites_of(report, mark, **wanted):
    return [site for site in report["sites"] if marked(mark) in lines_of(site) and
            all(site[field] == value for field, value in wanted.items())]


def unreleased_faults(line, report, page):
    """At the peak every layer's gathered weight is there, or one; each lives from the forward pass to
    the backward pass, or within one of them."""
    layers, steps = 12, report["lifetimes"]["steps"]
    sick = line["case"] == "unreleased"
    sites = sites_of(report, "GATHERS", layer="framework")
    of_them = [life for life in report["lifetimes"]["sites"]
               if life["stack"] in [site["stack"] for site in sites] and life["layer"] == "framework"]
    at_peak = sum(site["peak_count"] for site in sites)
    size = sum(site["peak_bytes"] for site in sites) / max(at_peak, 1)
    faults = unequal([
        ("gathered at the peak", at_peak, layers if sick else 1),
        ("categories", {site["category"] for site in sites}, {"activations" if sick else "temporaries"}),
        ("per step", sum(life["in_step"]["count"] + life["at_step_end"]["count"] for life in of_them),
         layers * steps * (1 if sick else 2)),
        ("not freed in its step", sum(life[end]["count"] for life in of_them
                                      for end in ("next_step", "later", "not_freed")), 0)])
    if not line["counted"]["weight"] <= size < line["counted"]["weight"] + MIB:
        faults.append(f"a weight of {size} bytes, the program made {line['counted']['weight']}")
    if sick and f"py:{marked('GATHERS')} in Partitioned.whole" not in page.split(" GPU 0 Sim", 1)[0]:
        faults.append(f"not told first:\n{page}")
    return faults


def workspaces_faults(line, report, page):
    """One for each handle and stream, on each of which there is one pool; expected, and no leak."""
    counted, sick = line["counted"], line["case"] == "workspaces"
    count = counted["handles"] * counted["streams"]
    sites = sites_of(report, "MULTIPLIES", layer="framework", category="workspace")
    device = report["devices"][0]
    parts = [part["live_bytes"] // counted["size"] for part in device["fragmentation"]["parts"]]
    faults = unequal([
        ("workspaces", sum(site["end_count"] for site in sites), count),
        ("their bytes", sum(site["end_bytes"] for site in sites), count * counted["size"]),
        ("by category", device["categories"]["at_end"]["workspace"], count * counted["size"]),
        ("of each stream", sorted(part for part in parts if part), [counted["handles"]] * counted["streams"]),
        ("growth that is none", [grown for grown in report["growth"] if not grown["expected"]], [])])
    for text, wanted in ((f"workspace: {count} block", True), ("Memory grows", False)):
        if (text in page) != wanted:
            faults.append(f"{text!r} on the page is not {wanted}:\n{page}")
    if sick and {grown["bytes_per_step"] for grown in report["growth"]} != {counted["size"]}:
        faults.append(f"grows: {report['growth']}")
    return faults


def flushed_faults(line, report, page):
    """Each flush is at the line that caused it, with the time it took."""
    faults = []
    for oom in report["ooms"]:
        site = next(site for site in report["sites"] if site["stack"] == oom["stack"])
        if marked("FLUSHES") not in lines_of(site) or not oom["repaired"] or oom["lost_ns"] <= 0 or \
                oom["given_back_bytes"] != 2000 * MIB:
            faults.append(f"at lines {lines_of(site)}: {oom}")
    text = f"{line['retries']} requests of PyTorch for memory failed at first; it gave back"
    if (text in page) != (line["case"] == "flushed"):
        faults.append(f"told or not told:\n{page}")
    return faults


def logged_faults(line, report, page):
    """Four values of 1 KiB stay of every step; an epoch's end drops them."""
    if line["case"] != "logged_values":
        return [f"told:\n{page}"] if "grows" in page else []
    if len(report["growth"]) != 1:
        return [f"{len(report['growth'])} places grow: {report['growth']}"]
    grown = report["growth"][0]
    faults = unequal([(field, grown[field], wanted) for field, wanted in (
        ("kind", "bytes"), ("bytes_per_step", 4096), ("count_per_step", 4), ("first_step", 80),
        ("grown_bytes", 39 * 4096), ("end_count", 160), ("rises_and_falls", True))])
    if not sites_of(report, "LOGS", stack=grown["stack"]):
        faults.append(f"elsewhere: {grown}")
    text = f"Memory grows by 4.00 KiB per step at torch_known.py:{marked('LOGS')} in training_step"
    return faults + ([] if text in page else [f"not told:\n{page}"])


def special_faults(name, line, report, page):
    if name in ("flushed", "logged_values"):
        return {"flushed": flushed_faults, "logged_values": logged_faults}[name](line, report, page)
    if name in ("unreleased", "workspaces"):
        return {"unreleased": unreleased_faults, "workspaces": workspaces_faults}[name](line, report, page)
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


def faults_of(line, report, page):
    name = line["case"].split()[0]
    faults = figures_faults(line, report) + special_faults(name, line, report, page)
    if line["case"] != "logged_values":
        faults += [f"grows: {grown}" for grown in report["growth"] if not grown["expected"]]
    healthy = line["case"] != name and name != "backward"  # its twin fails, and keeps nothing
    return faults + (unequal([("entries", report["ooms"], [])]) if healthy
                     else failure_faults(name, report))


def check(arguments):
    wrong, cases = [], [words for name in FAILS for words in (name, f"{name} healthy")]
    with tempfile.TemporaryDirectory(prefix="vramscope-known-") as folder:
        printed = real_torch.run_programs(arguments, folder, "4G", PROGRAM, cases)
        lines = [json.loads(line) for line in printed.splitlines()]
        reports = real_torch.reports_of(arguments, folder, with_pages=True)
    for words in cases:
        line = next((line for line in lines if line["case"] == words), None)
        if line is None or line["pid"] not in reports:
            wrong.append((words, "did not end, or has no trace"))
        else:
            report, page = reports[line["pid"]]
            wrong += [(words, fault) for fault in faults_of(line, report, " ".join(page.split()))]
    return real_torch.tell("WRONG", len(cases), wrong)


if __name__ == "__main__":
    sys.exit(real_torch.run_test(check))
