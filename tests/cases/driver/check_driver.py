#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plays problems at driver and runtime level on the simulated device: each one's report and page
say what it is, with its figures and its place; its healthy twin is silent.

usage: check_driver.py --program DRIVER_CASES --bin DIR --simgpu SCRIPT [CASE ...]
Exit status: 0 as expected, 1 not.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import check  # noqa: E402
from check import MIB, real_torch  # noqa: E402

GIB = 1024 * MIB


def functions_at(report, stack):
    """The functions of a stack's native frames, the innermost first."""
    site = next(site for site in report["sites"] if site["stack"] == stack)
    return [frame["function"] for frame in site["frames"]]


def differing(found, wanted):
    return [f"{name} is {found.get(name)!r}, not {value!r}" for name, value in wanted.items()
            if found.get(name) != value]


def faults_of_site(report, stack, function):
    found = functions_at(report, stack)
    return [] if function in found else [f"at {found}, not in {function}"]


def faults_of_ooms(report, wanted, named, function):
    if len(report["ooms"]) != 1:
        return [f"entries: {report['ooms']}"]
    faults = check.faults_of_oom(report["ooms"][0], wanted, named)
    return faults + faults_of_site(report, report["ooms"][0]["stack"], function)


def faults_of_failures(report, wanted):
    """`wanted`: (call, error, function, words of the hint) of each failed call."""
    found = {(failure["api"], failure["error"]): failure for failure in report["failures"]}
    if set(found) != {(api, error) for api, error, _, _ in wanted} or len(report["failures"]) != len(wanted):
        return [f"failures: {report['failures']}"]
    faults = []
    for api, error, function, hint in wanted:
        failure = found[api, error]
        faults += differing(failure, {"count": 1})
        faults += faults_of_site(report, failure["stack"], function)
        if hint not in failure["hint"]:
            faults.append(f"{hint!r} is not in {failure['hint']!r}")
    return faults


# ---- what each case must show: faults in its reports, the first process's first ------------------

def context_and_modules(report):
    end = report["devices"][0]["end"]
    faults = differing(end["implicit_bytes"], {"context": 300 * MIB, "modules": 64 * 8 * MIB})
    faults += differing(end, {"direct_bytes": 2 * MIB, "unexplained_bytes": 0})
    return faults + faults_of_site(report, report["devices"][0]["context_created"]["stack"], "first_call")


def context_elsewhere(report):
    """The device that the process did not mean to use, and by which call it does."""
    first, second = report["devices"]
    faults = differing(first["end"]["implicit_bytes"], {"context": 300 * MIB})
    faults += differing(second["end"]["implicit_bytes"], {"context": 300 * MIB})
    faults += differing(first["context_created"], {"api": "cudaMalloc"})
    faults += differing(second["context_created"], {"api": "cudaSetDevice"})
    return faults + faults_of_site(report, first["context_created"]["stack"], "look_at_the_checkpoint")


def only_on_the_second(report):
    contexts = [device["index"] for device in report["devices"] if device["context_created"]]
    return [] if contexts == [1] else [f"contexts on devices {contexts}"]


def address_space(report):
    return faults_of_ooms(
        report, {"class": "address_space", "layer": "driver", "api": "cuMemAddressReserve",
                 "requested_bytes": 128 * GIB, "handled": True,
                 "attempts": [{"api": "cuMemAddressReserve", "bytes": 128 * GIB,
                               "error": "CUDA_ERROR_OUT_OF_MEMORY"}]},
        ["128 GiB of addresses", "needs no memory"], "reserve")


def preallocated(report):
    """Before it was known who else is there: it is the process's own all the same."""
    return faults_of_ooms(
        report, {"class": "full", "layer": "driver", "api": "cudaMalloc", "requested_bytes": 120 * MIB,
                 "free_bytes": 110 * MIB, "retry_would_succeed": False},
        ["23.6 GiB of 24.0 GiB were in use by this process", "110 MiB were free"], "ask_for_more")


def client_limit(report):
    return faults_of_ooms(
        report, {"class": "limit", "layer": "driver", "api": "cudaMalloc", "device": 0, "requested_bytes": 2 * GIB,
                 "free_bytes": 80 * GIB - 812 * MIB, "retry_would_succeed": False},
        ["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=1G limits what each process may hold", "79.2 GiB were free"], "ask_for_more")


def refused_with_room(report):
    """The same where nothing tells of a limit."""
    return faults_of_ooms(
        report, {"class": "unknown", "layer": "driver", "requested_bytes": 2 * GIB, "free_bytes": 80 * GIB - 812 * MIB},
        ["though 79.2 GiB were free", "a limit that the device does not show"], "ask_for_more")


def stack_limit(report):
    """No call allocates it: who set the limit, and what the device had less after the next launch."""
    device = report["devices"][0]
    faults = differing(device["end"]["implicit_bytes"], {"local_memory": (8192 - 1024) * 108 * 2048})
    faults += differing(device["end"], {"direct_bytes": 4 * MIB, "unexplained_bytes": 0})
    if len(device["limits"]) != 1:
        return faults + [f"limits: {device['limits']}"]
    limit = device["limits"][0]
    faults += differing(limit, {"limit": "stack_size", "value": 8192, "api": "cudaDeviceSetLimit"})
    return faults + faults_of_site(report, limit["stack"], "raise_the_limit")


def exported(producer, consumer, folder):
    """What the producer gave out and what the consumer keeps open are one handle; the folder's report
    puts them together."""
    given, opened = producer["shared"]["exported"], consumer["shared"]["opened"]
    if len(given) != 1 or len(opened) != 1 or producer["shared"]["opened"] or consumer["shared"]["exported"]:
        return [f"shared: {producer['shared']}, {consumer['shared']}"]
    faults = differing(given[0], {"bytes": 16 * GIB, "live_bytes": None, "device": 0})
    faults += differing(opened[0], {"handle": given[0]["handle"], "opens": 1, "device": 0})
    faults += faults_of_site(producer, given[0]["stack"], "produce")
    faults += faults_of_site(consumer, opened[0]["stack"], "consume")
    together = folder["shared"]["exported"][0]
    faults += differing(folder["process"], {"pid": producer["process"]["pid"]})
    faults += differing(together, dict(given[0], open_in=together["open_in"]))
    faults += differing(together["open_in"][0] if together["open_in"] else {}, {"pid": consumer["process"]["pid"]})
    # It counts once, in the producer; what the consumer's device shows of it is not certain to be its own.
    ends = [report["devices"][0]["end"] for report in (producer, consumer)]
    faults += differing(ends[0], {"direct_bytes": 16 * GIB + 2 * MIB})
    faults += differing(ends[1], {"direct_bytes": 2 * MIB})
    certain = ends[1]["implicit_bytes"]["context"] - ends[1]["implicit_bytes"]["uncertainty"]
    return faults + ([f"a context of {certain} for certain"] if certain > 300 * MIB else [])


def exported_pieces(producer, consumer, _):
    """By a descriptor, which tells nobody who has it: of each process what it still refers to. The
    producer has let go of the first, the consumer of every other one."""
    given, taken = producer["shared"]["exported"], consumer["shared"]["opened"]
    if len(given) != 1 or len(taken) != 1:
        return [f"shared: {producer['shared']}, {consumer['shared']}"]
    faults = differing(given[0], {"pieces": 3, "bytes": 192 * MIB, "handle": None, "device": 0})
    faults += differing(taken[0], {"pieces": 2, "bytes": 128 * MIB, "handle": None, "opens": None, "device": None})
    faults += differing(producer["devices"][0]["end"], {"direct_bytes": 192 * MIB})
    faults += differing(consumer["devices"][0]["end"], {"direct_bytes": 0})
    faults += faults_of_site(producer, given[0]["stack"], "export_piece")
    return faults + faults_of_site(consumer, taken[0]["stack"], "import_piece")


def nothing_shared(*reports):
    return [f"shared: {report['shared']}" for report in reports
            if report["shared"]["exported"] or report["shared"]["opened"]]


def ipc_of_pieces(report):
    faults = differing(report["trace"], {"exit_code": 1})
    return faults + faults_of_failures(report, [("cudaIpcGetMemHandle", "cudaErrorInvalidValue",
                                                 "ask_for_a_handle", "no legacy IPC handle")])


def waiting_streams(report):
    """119 messages fit beside the context; all are freed, and none can be used again."""
    freed = 119 * 100 * MIB
    faults = faults_of_ooms(
        report, {"class": "waiting_streams", "layer": "framework", "requested_bytes": 100 * MIB,
                 "pending_bytes": freed, "cached_bytes": freed, "largest_free_block_bytes": 0},
        ["11.6 GiB of freed blocks that waited for stream 0x"], "take")
    created = [line for line in report["objects"] if line["kind"] == "stream"]
    faults += differing(created[0], {"live": 1})
    faults += differing(report["ooms"][0]["pending_on"] or {}, {"bytes": freed})
    return faults + differing(report["devices"][0]["end"], {"pending_bytes": freed, "allocated_bytes": 0})


def upstream_blocks(report):
    """Two blocks do not join: as much is free as is asked for, but not in one piece."""
    faults = faults_of_ooms(
        report, {"class": "fragmented", "layer": "framework", "requested_bytes": 1024 * MIB,
                 "cached_bytes": 1024 * MIB, "largest_free_block_bytes": 768 * MIB, "attempts": [],
                 "retry_would_succeed": False},
        ["1.00 GiB were cached and free", "largest free block was 768 MiB", "limit of its own"], "take")
    parts = report["ooms"][0]["fragmentation"]["parts"]
    return faults + differing(parts[0], {"segments": 2, "free_bytes": 1024 * MIB, "live_bytes": 0})


def kept_by_pool(api, function):
    """Six batches of 300 MiB are free again in the driver's pool, between six that are not."""
    return lambda report: faults_of_ooms(
        report, {"class": "held_by_cache", "layer": "driver", "api": api, "requested_bytes": 1100 * MIB,
                 "free_bytes": 4 * GIB - 300 * MIB - 6 * 500 * MIB, "retry_would_succeed": False},
        ["pool kept 1.76 GiB that had been freed", "cudaMemPoolTrimTo"], function)


def map_refused(report):
    return faults_of_failures(report, [("cuMemMap", "CUDA_ERROR_INVALID_VALUE", "map_and_open",
                                        "is mapped already")])


def access_refused(report):
    return faults_of_failures(report, [("cuMemSetAccess", "CUDA_ERROR_INVALID_VALUE",
                                        "access_refused", "is not mapped")])


def multicast_full(report):
    """The handle is there, its memory is not: the device is not full."""
    return faults_of_ooms(
        report, {"class": "multicast", "layer": "driver", "api": "cuMulticastBindMem",
                 "requested_bytes": 512 * MIB, "handled": True},
        ["multicast owns no device memory"], "bind_multicast")


def multicast_refused(report):
    return faults_of_failures(report, [("cuMulticastCreate", "CUDA_ERROR_SYSTEM_NOT_READY",
                                        "make_multicast", "fabric manager")])


def pinned_twice(report):
    return faults_of_failures(report, [
        ("cudaHostRegister", "cudaErrorHostMemoryAlreadyRegistered", "pin", "is pinned already"),
        ("cudaHostUnregister", "cudaErrorHostMemoryNotRegistered", "pinned_twice",
         "is not pinned")])


def without_memory(call):
    return lambda report: faults_of_ooms(
        report, {"class": "unknown", "layer": "driver", "api": call, "device": 0, "retry_would_succeed": None,
                 "requested_bytes": 64 * MIB, "free_bytes": 80 * GIB - 300 * MIB - 128 * MIB},
        ["mapping 64.0 MiB", "but page tables", "79.6 GiB"], "map_and_open")


def peer_twice(report):
    return faults_of_failures(report, [
        ("cudaDeviceEnablePeerAccess", "cudaErrorPeerAccessAlreadyEnabled", "reach_peer",
         "enabled before: harmless"),
        ("cudaDeviceDisablePeerAccess", "cudaErrorPeerAccessNotEnabled", "peer_twice",
         "was not enabled")])


def peer_unsupported(report):
    return faults_of_failures(report, [
        ("cudaDeviceEnablePeerAccess", "cudaErrorPeerAccessUnsupported", "reach_peer",
         "cannot reach each other's memory")])


def pinned_rounding(report):
    end = report["devices"][0]["end"]
    faults = differing(end, {"host_framework_bytes": 16384 * MIB,
                             "host_framework_rounding_at_most_bytes": 8192 * MIB - 1})
    site = max(report["sites"], key=lambda site: site["end_bytes"])
    faults += differing(site, {"layer": "host", "end_bytes": 16384 * MIB,
                               "end_rounding_at_most_bytes": 8192 * MIB - 1})
    return faults + faults_of_site(report, site["stack"], "pinned_rounding")


# Case: options of the simulated device, what its page says, what its report must show.
CASES = {
    "context_and_modules": (["--module", "8M"], ["512 MiB of it by loaded modules",
                                                 "modules (by difference) 512 MiB"],
                            context_and_modules),
    "context_elsewhere": (["--devices", "2"], ["It held 4.00 MiB and a context of 300 MiB (by difference) on GPU 0, too, made by driver_cases.c:",
                                               "context made by cudaMalloc at", "in look_at_the_checkpoint"],
                          context_elsewhere),
    "stack_limit": ([], ["1.48 GiB of it by local memory of threads", "local memory (by difference) 1.48 GiB",
                         "cudaDeviceSetLimit set the stack of a thread to 8.00 KiB",
                         "stack x multiprocessors x threads of each", "in raise_the_limit"], stack_limit),
    "preallocated": (["--memory", "24G"], ["cudaMalloc of 120 MiB on GPU 0, the program went on: full"],
                     preallocated),
    "client_limit": (["--fail", "cuMemAlloc:above=1GiB:out_of_memory"],
                     ["cudaMalloc of 2.00 GiB on GPU 0, the program went on: limit"], client_limit),
    "refused_with_room": (["--fail", "cuMemAlloc:above=1GiB:out_of_memory"],
                          ["cudaMalloc of 2.00 GiB on GPU 0, the program went on: unknown"], refused_with_room),
    "exported": ([], ["exported 16.0 GiB on GPU 0", "Memory shared with other processes", "not closed", "open in pid"], exported),
    "exported_pieces": ([], ["exported 192 MiB in 3 pieces of cuMemCreate on GPU 0",
                             "imported 128 MiB in 2 pieces of cuMemCreate", "not released"], exported_pieces),
    "ipc_of_pieces": ([], ["It failed (exit 1), and not for want of GPU memory; the last call that failed: "
                           "cudaIpcGetMemHandle at", "memory that has no legacy IPC handle"], ipc_of_pieces),
    "waiting_streams": (["--memory", "12217M", "--delay", "events:100s"], [": waiting_streams", "waited for stream 0x"],
                        waiting_streams),
    "upstream_blocks": ([], ["1.00 GiB were cached and free, but the largest free block was 768 MiB"],
                        upstream_blocks),
    "pool_keeps": (["--memory", "4G"], ["cudaMallocAsync of 1.07 GiB on GPU 0, the program went on: held_by_cache"],
                   kept_by_pool("cudaMallocAsync", "take_ordered")),
    "pool_starves": (["--memory", "4G"], ["cudaMalloc of 1.07 GiB on GPU 0, the program went on: held_by_cache"],
                     kept_by_pool("cudaMalloc", "ask_for_more")),
    "pinned_rounding": ([], ["up to 8.00 GiB rounding to powers of two"], pinned_rounding),
    "address_space": (["--address-space", "64GiB"], ["cuMemAddressReserve of 128 GiB", ": address_space"],
                      address_space),
    "map_refused": ([], ["1 x cuMemMap: CUDA_ERROR_INVALID_VALUE"], map_refused),
    "access_refused": ([], ["1 x cuMemSetAccess: CUDA_ERROR_INVALID_VALUE"], access_refused),
    "map_without_memory": (["--fail", "cuMemMap:2:out_of_memory"],
                           ["cuMemMap of 64.0 MiB on GPU 0, the program went on: unknown"],
                           without_memory("cuMemMap")),
    "access_without_memory": (["--fail", "cuMemSetAccess:2:out_of_memory"],
                              ["cuMemSetAccess of 64.0 MiB on GPU 0, the program went on: unknown"],
                              without_memory("cuMemSetAccess")),
    "multicast_refused": (["--fail", "cuMulticastCreate:1:system_not_ready"],
                          ["the fabric manager must run"], multicast_refused),
    "multicast_full": (["--fail", "cuMulticastBindMem:1:out_of_memory"],
                       ["cuMulticastBindMem of 512 MiB", ": multicast"], multicast_full),
    "peer_twice": (["--devices", "2"], ["1 x cudaDeviceEnablePeerAccess: cudaErrorPeerAccessAlreadyEnabled"],
                   peer_twice),
    "peer_unsupported": (["--devices", "2", "--fail", "cuCtxEnablePeerAccess:1:peer_access_unsupported"],
                         ["cannot reach each other's memory"], peer_unsupported),
    "pinned_twice": ([], ["1 x cudaHostRegister: cudaErrorHostMemoryAlreadyRegistered"],
                     pinned_twice),
}
# Settings of a case.
SETTINGS = {"client_limit": {"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=1G"}}
# The status of a case that does not end with 0.
STATUS = {"ipc_of_pieces": 1}
# A healthy twin's figures, where silence alone says little.
HEALTHY = {
    "context_and_modules": lambda report: differing(
        report["devices"][0]["end"]["implicit_bytes"], {"modules": 8 * MIB}),
    "context_elsewhere": only_on_the_second,
    "stack_limit": lambda report: differing(report["devices"][0]["end"]["implicit_bytes"],
                                            {"local_memory": 0}),
    "exported_pieces": nothing_shared,
    "ipc_of_pieces": nothing_shared,
    "pinned_rounding": lambda report: differing(
        report["devices"][0]["end"], {"host_framework_bytes": 0, "host_pinned_bytes": 8292 * MIB}),
}


def play(arguments, name, healthy):
    """The reports of a case's processes, the one that was started first, and where there are several
    that of their folder; their pages, in one."""
    options = CASES[name][0]
    with tempfile.TemporaryDirectory(prefix="vramscope-cases-") as folder:
        words = [arguments.bin / "vramscope", "run", "-o", f"{folder}/", "--", arguments.simgpu, *options,
                 "--", arguments.program, name, *(["healthy"] if healthy else [])]
        done = subprocess.run(words, stdout=subprocess.PIPE, text=True, timeout=120, check=False,
                              env=dict(os.environ, **SETTINGS.get(name, {}), VRAMSCOPE_LOG="error",
                                       VRAMSCOPE_SAMPLE="always"))  # so short a run has little time for it
        if done.returncode != (0 if healthy else STATUS.get(name, 0)):
            raise SystemExit(f"{name}: status {done.returncode}")
        files = list(pathlib.Path(folder).rglob("*.vscope"))
        for file in files:
            verified = subprocess.run([arguments.bin / "vramscope", "verify", file], stdout=subprocess.PIPE,
                                      text=True, check=False)
            if verified.returncode != 0:
                raise SystemExit(f"{name}: verify:\n{verified.stdout}")
        traces = [(real_torch.report_of(arguments, file), real_torch.page_of(arguments, file)) for file in files]
        traces.sort(key=lambda trace: trace[0]["process"]["pid"])
        if len(files) > 1:
            traces.append((real_torch.report_of(arguments, folder), real_torch.page_of(arguments, folder)))
    return [report for report, _ in traces], " ".join(" ".join(page for _, page in traces).split())


def faults_of_case(arguments, name):
    _, said, shown = CASES[name]
    reports, page = play(arguments, name, False)
    return shown(*reports) + [f"{text!r} is not on the page:\n{page}" for text in said if text not in page]


def faults_of_twin(arguments, name):
    said = CASES[name][1]
    reports, page = play(arguments, name, True)
    faults = [fault for report in reports for fault in check.faults_of_twin(False, None, report)]
    faults += [f"failures: {report['failures']}" for report in reports if report["failures"]]
    faults += [f"growth: {report['growth']}" for report in reports if report["growth"]]
    faults += [f"{text!r} is on the page:\n{page}" for text in said if text in page]
    return faults + (HEALTHY[name](*reports) if name in HEALTHY else [])


def main():
    parser = argparse.ArgumentParser()
    for option in ("program", "bin", "simgpu"):
        parser.add_argument(f"--{option}", required=True, type=pathlib.Path)
    parser.add_argument("cases", nargs="*", default=list(CASES))
    arguments = parser.parse_args()
    wrong = []
    for name in arguments.cases:
        wrong += [(name, fault) for fault in faults_of_case(arguments, name)]
        wrong += [(f"{name} healthy", fault) for fault in faults_of_twin(arguments, name)]
    return real_torch.tell("WRONG", 2 * len(arguments.cases), wrong)


if __name__ == "__main__":
    sys.exit(main())
