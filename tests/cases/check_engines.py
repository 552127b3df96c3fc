#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plays problems of programs that share a device, and of engines that take most of it, with real
PyTorch on the simulated device: the first lines of the page say who has the memory and what gives it
back, the figures are PyTorch's and the device's own; healthy twins are silent.

usage: check_engines.py --bin DIR --simgpu SCRIPT [--python PYTHON]
Exit status: 0 as expected, 1 not, 77 no PyTorch here.
"""
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "torch"))
import real_torch  # noqa: E402

MIB = 1 << 20
GRAPH_NODE = 8 * MIB
PROGRAM = pathlib.Path(__file__).resolve().parent / "programs" / "torch_engines.py"
# Of the request that fails: device, class, layer, MiB, what the first lines of the page say of it.
# {partner} and {untraced} are the processes that took part.
FAILS = {
    "cache_of_another": (0, "held_by_cache", "framework", 2000, [
        "1.95 GiB were asked for and 496 MiB were free, while pid {partner}",
        "cached 2.44 GiB on the same device and could have given 2.44 GiB of it back"]),
    "cache_on_second": (1, "held_by_cache", "framework", 2000, [
        "while pid {partner}", "could have given 2.44 GiB of it back", "GPU 1 were in use"]),
    "tensors_of_another": (0, "other_process", "framework", 2000, ["pid {partner}", "1.95 GiB were asked for"]),
    "utilization": (0, "other_process", "framework", 64, ["the largest is pid {untraced}"]),
    "beside": (0, "held_by_cache", "driver", 1500, [
        "asked for outside of the framework", "its cache held 2.73 GiB unused",
        "torch.cuda.empty_cache() would have given back 2.73 GiB"]),
    "asleep": (0, "full", "driver", 1000, ["2.73 GiB that the framework counts had no memory behind it"]),
    "asleep_beside_cache": (0, "held_by_cache", "driver", 1000, [
        "torch.cuda.empty_cache() would have given back 3.32 GiB"]),
}
# What else the page says.
SAYS = {
    "cache_of_another": ["torch.cuda.empty_cache() in pid {partner} would have given back 2.44 GiB"],
    "utilization": ["pid {untraced} (not traced here", "by NVML"],
    "asleep": ["3.32 GiB of it by PyTorch", "2.73 GiB of the 6.05 GiB it had reserved had no memory behind it",
               "PyTorch counted 6.05 GiB allocated and 6.05 GiB reserved"],
    "sleep_and_forget": ["480 MiB of it by libsleeping", "grows by 20.0 MiB per step", "in sleep_and_forget"],
    "context_elsewhere": ["GPU 1 were in use", "It held 20.0 MiB and a context of 300 MiB (by difference) on GPU 0, too, made by "
                          "torch_engines.py:"],
    "graphs": ["of it by executable graphs", "captures of graphs, 12 times"],
}
CASES = [*FAILS, "sleep_and_forget", "context_elsewhere", "graphs"]
NODES = sum(10 + size for size in range(12))


def marked(mark):
    return next(number for number, text in enumerate(PROGRAM.read_text().splitlines(), 1)
                if text.endswith(f"# {mark}"))


def lines_of(report, stack):
    site = next(site for site in report["sites"] if site["stack"] == stack)
    return [frame["line"] for frame in site["frames"] if frame["file"] == str(PROGRAM)]


def unequal(pairs):
    return [f"{what} is {ours!r}, not {wanted!r}" for what, ours, wanted in pairs if ours != wanted]


def figures_faults(line, report):
    """Every device that the process's PyTorch has memory of, against PyTorch and the device itself."""
    faults = []
    for wanted in line["devices"]:
        end = next(device["end"] for device in report["devices"] if device["index"] == wanted["device"])
        faults += unequal([("allocated", end["allocated_bytes"], wanted["allocated"]),
                           ("reserved", end["reserved_bytes"], wanted["reserved"]),
                           ("backed and unbacked", end["backed_bytes"] + end["unbacked_bytes"], wanted["reserved"]),
                           ("in use", end["device_bytes"], wanted["used"])])
        if "partner" not in line["told"] and line["role"] == "main":  # else as of NVML's last answer
            faults += unequal([("unexplained", end["unexplained_bytes"], 0)])
    return faults


def failure_faults(name, line, report):
    device, wanted, layer, mib, named = FAILS[name]
    if len(report["ooms"]) != 1:
        return [f"entries: {report['ooms']}"]
    oom = report["ooms"][0]
    case = "cache_of_another" if name == "cache_on_second" else name
    faults = unequal([("device", oom["device"], device), ("class", oom["class"], wanted), ("layer", oom["layer"], layer),
                      ("requested", oom["requested_bytes"], mib * MIB), ("handled", oom["handled"], False),
                      ("at its line", marked(f"FAILS {case}") in lines_of(report, oom["stack"]), True)])
    return faults + ([oom["why"]] if faults else [])


def special_faults(name, report):
    end = report["devices"][0]["end"]
    if name == "asleep":
        return unequal([("asleep", end["unbacked_bytes"], 2800 * MIB), ("backed", end["backed_bytes"], 3400 * MIB)])
    if name == "graphs":
        live = next(each for each in report["objects"] if each["kind"] == "graph_exec")
        kept = [phase["resident_bytes"] for phase in report["phases"]
                if phase["kind"] == "capture" and phase["band"] == "graphs"]
        return unequal([("graphs", end["implicit_bytes"]["graphs"], NODES * GRAPH_NODE), ("live", live["live"], 12),
                        ("of each", kept, [(10 + size) * GRAPH_NODE for size in range(12)]),
                        ("at its line", marked("CAPTURES") in lines_of(report, live["stack"]), True)])
    if name == "context_elsewhere":
        made = report["devices"][0]["context_created"]
        return unequal([("at its line", marked("LOADS") in lines_of(report, made["stack"]), True)])
    if name == "sleep_and_forget":
        grown = report["growth"]
        if len(grown) != 1:
            return [f"grows: {grown}"]
        return unequal([("kind", grown[0]["kind"], "handle"), ("a step", grown[0]["bytes_per_step"], 20 * MIB),
                        ("asleep", end["unbacked_bytes"], 20 * MIB), ("direct", end["direct_bytes"], 480 * MIB),
                        ("at its line", marked("FORGETS") in lines_of(report, grown[0]["stack"]), True)])
    return []


def page_faults(texts, page, told):
    wanted = [text.format(**{"partner": "", "untraced": "", **told}) for text in texts]
    return [f"{text!r} is not in: {page}" for text in wanted if text not in page]


def faults_of(line, report, page):
    name, *healthy = line["case"].split()
    faults = figures_faults(line, report)
    if line["role"] == "partner" or healthy:
        loud = [oom for oom in report["ooms"] if not oom["repaired"]]
        faults += ["it speaks of another context"] if "It has a context" in " ".join(page.split()) else []
        return faults + [f"{what}: {entries}" for what, entries in
                         (("ooms", loud), ("grows", report["growth"]), ("failures", report["failures"])) if entries]
    words = " ".join(page.split())
    first = words.split("GPU 0 Simulated")[0]
    faults += special_faults(name, report) + page_faults(SAYS.get(name, []), words, line["told"])
    if name in FAILS:
        faults += failure_faults(name, line, report) + page_faults(FAILS[name][4], first, line["told"])
    else:
        faults += [f"ooms: {report['ooms']}"] if report["ooms"] else []
    return faults + ([f"grows: {report['growth']}"] if report["growth"] and name != "sleep_and_forget" else [])


def shares_faults(page):
    """No band is more than the device has."""
    words = page.split()
    shares = [float(before) for before, word in zip(words, words[1:]) if word == "%"]
    return [f"{share} % on the page" for share in shares if share > 100]


def check(arguments):
    wrong, played = [], [words for name in CASES for words in (name, f"{name} healthy")]
    with tempfile.TemporaryDirectory(prefix="vramscope-engines-") as folder:
        printed = real_torch.run_programs(arguments, folder, "4G", PROGRAM, played,
                                          options=["--devices", "2", "--graph-node", str(GRAPH_NODE)])
        lines = [json.loads(line) for line in printed.splitlines()]
        reports, pages = {}, {}
        for trace in sorted(pathlib.Path(folder).rglob("*.vscope")):
            report = real_torch.report_of(arguments, trace)
            reports[report["process"]["pid"]] = report
            pages[report["process"]["pid"]] = real_torch.page_of(arguments, trace)
    for words in played:
        if words not in [line["case"] for line in lines if line["role"] == "main"]:
            wrong.append((words, "did not end"))
    for line in lines:
        if line["pid"] not in reports:
            wrong.append((line["case"], f"{line['role']} has no trace"))
            continue
        report, page = reports[line["pid"]], pages[line["pid"]]
        wrong += [(f"{line['case']} ({line['role']})", fault)
                  for fault in faults_of(line, report, page) + shares_faults(page)]
    return real_torch.tell("WRONG", len(lines), wrong)


if __name__ == "__main__":
    sys.exit(real_torch.run_test(check))
