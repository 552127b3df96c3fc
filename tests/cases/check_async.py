#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plays out of memory in PyTorch's backend over the driver's pool on the simulated device: what the
pool kept is what PyTorch and the device say it did not use; healthy twins stay silent.

usage: check_async.py --bin DIR --simgpu SCRIPT [--python PYTHON]
Exit status: 0 as expected, 1 not, 77 no PyTorch here.
"""
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from check import MIB, faults_of_oom, faults_of_twin, real_torch  # noqa: E402

PROGRAM = pathlib.Path(__file__).resolve().parent / "programs" / "torch_async.py"
NAMES = ("trimmed", "pages")
FIRST_PARAGRAPH = {
    "trimmed": "1 request of PyTorch for memory failed at first; it gave back 1.76 GiB of its cache",
    "pages": "memory pool kept 2.56 GiB that had been freed: in pages with live blocks",
}


def lines_of(report, stack):
    site = next(site for site in report["sites"] if site["stack"] == stack)
    return [frame["line"] for frame in site["frames"] if frame["file"] == str(PROGRAM)]


def marked(mark):
    return next(number for number, text in enumerate(PROGRAM.read_text().splitlines(), 1)
                if text.endswith(f"# {mark}"))


def faults_of_case(line, report, page):
    name, before = line["case"], line["before"]
    if len(report["ooms"]) != 1 or line["failed"] != (name == "pages"):
        return [f"failed: {line['failed']}, entries: {report['ooms']}"]
    oom, faults = report["ooms"][0], []
    wanted = {"class": "fragmented", "layer": "framework", "requested_bytes": 1100 * MIB,
              "api": "cudaMallocAsync", "repaired": name == "trimmed", "free_bytes": before["free"],
              "cached_bytes": before["reserved"] - before["allocated"]}
    if name == "trimmed":  # what the device has more of, but for the request itself
        wanted["given_back_bytes"] = line["after"]["free"] - before["free"] + 1100 * MIB
    faults += faults_of_oom(oom, wanted, [])
    if marked(f"FAILS {name}") not in lines_of(report, oom["stack"]):
        faults.append(f"at lines {lines_of(report, oom['stack'])}")
    if FIRST_PARAGRAPH[name] not in page.split("At most ", 1)[0]:
        faults.append(f"not told first:\n{page}")
    return faults


def check(arguments):
    wrong, cases = [], [words for name in NAMES for words in (name, f"{name} healthy")]
    with tempfile.TemporaryDirectory(prefix="vramscope-async-") as folder:
        printed = real_torch.run_programs(arguments, folder, "4G", PROGRAM, cases)
        lines = {line["pid"]: line for line in map(json.loads, printed.splitlines())}
        for trace in sorted(pathlib.Path(folder).rglob("*.vscope")):
            report = real_torch.report_of(arguments, trace)
            line = lines.pop(report["process"]["pid"], None)
            if line is None:
                continue  # the parent, which has no device
            page = " ".join(real_torch.page_of(arguments, trace).split())
            if line["case"] in NAMES:
                faults = faults_of_case(line, report, page)
            else:
                faults = faults_of_twin(line["failed"], None, report)
                faults += [f"entries: {report['ooms']}"] if report["ooms"] else []
            wrong += [(line["case"], fault) for fault in faults]
    wrong += [(line["case"], "no trace") for line in lines.values()]
    return real_torch.tell("WRONG", len(cases), wrong)


if __name__ == "__main__":
    sys.exit(real_torch.run_test(check))
