#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory of a device that is another process's, all of them traced: the workers of a DataLoader, and
a rank that loads its checkpoint onto the device of another one. The page says first whose it is, how
much, and by which line; what PyTorch and the device say is the oracle, and healthy twins are silent.

usage: check_processes.py --bin DIR --simgpu SCRIPT [--python PYTHON]
Exit status: 0 as expected, 1 not, 77 no PyTorch here.
"""
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "torch"))
import real_torch  # noqa: E402

MIB = 1 << 20
CONTEXT = 300 * MIB  # of the simulated device
PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
WORKERS = 3


def marked(program, mark):
    return next(number for number, text in enumerate((PROGRAMS / program).read_text().splitlines(), 1)
                if text.endswith(f"# {mark}"))


def play(arguments, program, cases, **options):
    """The printed lines, the folder's report and its first paragraph, and the report of each process."""
    with tempfile.TemporaryDirectory(prefix="vramscope-processes-") as folder:
        cases = [str(pathlib.Path(folder) / case) if case.endswith(".pt") else case for case in cases]
        printed = real_torch.run_programs(arguments, folder, "8G", PROGRAMS / program, cases, **options)
        lines = [json.loads(line) for line in printed.splitlines() if line.startswith('{"pid"')]
        return (lines, real_torch.report_of(arguments, folder), first_of(real_torch.page_of(arguments, folder)),
                real_torch.reports_of(arguments, folder, with_pages=True))


def first_of(page):
    """What comes before the evidence, as one line."""
    return " ".join(page.split("\nGPU ", 1)[0].split())


def unequal(pairs):
    return [f"{what} {ours}, not {wanted}" for what, ours, wanted in pairs if ours != wanted]


def not_said(page, *texts):
    return [f"{text!r} is not said first: {page}" for text in texts if text not in page]


def at_peak(report):
    siblings = report["siblings"]
    return siblings["at_peak"]["processes"] if siblings and siblings["at_peak"] else []


def place_of(process):
    made_by = process["context_made_by"] or {}
    return pathlib.Path(made_by.get("file") or "").name, made_by.get("line")


def loader_faults(arguments):
    lines, report, page, _ = play(arguments, "torch_loader.py", [str(WORKERS)])
    line, others, at = lines[0], at_peak(report), marked("torch_loader.py", "TOUCHES")
    theirs = sum(process["device_bytes"] for process in others)
    own = report["devices"][0]["peak"]["bands_at_device_peak"]
    faults = unequal([
        ("reported is pid", report["process"]["pid"], line["pid"]),
        ("processes that held some", sorted(process["pid"] for process in others), sorted(line["workers"])),
        ("contexts made at", {place_of(process) for process in others}, {("torch_loader.py", at)}),
        ("of contexts", [process["implicit_bytes"] for process in others], [CONTEXT] * WORKERS),
        ("its own context", own["implicit_bytes"]["context"], CONTEXT),
        ("in use at the peak", report["devices"][0]["peak"]["device_bytes"], line["used"]),
        ("all of them", CONTEXT + own["reserved_bytes"] + theirs, line["used"])])
    return faults + not_said(page, f"held by {WORKERS} traced processes that this one started",
                             "300 MiB of it for its CUDA context, made by", f"torch_loader.py:{at} in Samples")


def loader_twin_faults(arguments):
    lines, report, page, reports = play(arguments, "torch_loader.py", [str(WORKERS), "healthy"])
    faults = [f"said: {page}"] if "Of that" in page else []
    contexts = [pid for pid, (each, _) in reports.items() if any(device["context_created"] for device in each["devices"])]
    return faults + unequal([("contexts of", contexts, [lines[0]["pid"]]), ("others", at_peak(report), [])])


RANKS = {"options": ["--devices", "2"], "launcher": ["-m", "torch.distributed.run", "--nproc-per-node", "2"]}


def resume_faults(arguments):
    lines, _, _, reports = play(arguments, "torch_resume.py", ["checkpoint.pt"], **RANKS)
    first, second = sorted(lines, key=lambda line: line["rank"])
    at, stray = marked("torch_resume.py", "LOADS"), second["reserved"][0]
    owner, page = reports[first["pid"]]
    there = at_peak(owner)
    faults = unequal([
        ("processes on device 0", [(process["pid"], process["rank"]) for process in there], [(second["pid"], 1)]),
        ("made at", [place_of(process) for process in there], [("torch_resume.py", at)]),
        ("held there", [process["device_bytes"] for process in there], [CONTEXT + stray]),
        ("of contexts", [process["implicit_bytes"] for process in there], [CONTEXT]),
        ("reserved there", [process["reserved_bytes"] for process in there], [stray])])
    faults += not_said(first_of(page), "of it by other processes",
                       f"was held by a traced process, pid {second['pid']} (rank 1)",
                       f"torch_resume.py:{at} in load")
    culprit, page = reports[second["pid"]]
    device = next(device for device in culprit["devices"] if device["index"] == 0)
    site = next(site for site in culprit["sites"] if site["stack"] == device["context_created"]["stack"])
    if at not in [frame["line"] for frame in site["frames"]]:
        faults.append(f"made by {site['frames']}")
    return faults + not_said(first_of(page), "of GPU 1 were in use", "It held 100 MiB and a context of 300 MiB (by difference) on GPU 0, too,",
                             f"made by torch_resume.py:{at} in load")


def resume_twin_faults(arguments):
    lines, _, _, reports = play(arguments, "torch_resume.py", ["checkpoint.pt", "healthy"], **RANKS)
    faults = []
    for line in lines:
        report, page = reports[line["pid"]]
        used = [device["index"] for device in report["devices"] if device["context_created"]]
        faults += unequal([(f"rank {line['rank']} has contexts on", used, [line["rank"]]),
                           ("others", at_peak(report), [])])
        faults += [f"said: {first_of(page)}" for text in ("Of that", ", too: its context") if text in first_of(page)]
    return faults


CASES = {"loader": loader_faults, "loader healthy": loader_twin_faults, "resume": resume_faults,
         "resume healthy": resume_twin_faults}


def check(arguments):
    wrong = [(name, fault) for name, faults in CASES.items() for fault in faults(arguments)]
    return real_torch.tell("WRONG", len(CASES), wrong)


if __name__ == "__main__":
    sys.exit(real_torch.run_test(check))
