# SPDX-License-Identifier: Apache-2.0
"""What the tests share that run real PyTorch on the simulated device and read the report."""
import argparse
import json
import os
import pathlib
import subprocess

SKIPPED = 77


def run_test(test):
    """The exit status of test(arguments); SKIPPED where there is no PyTorch. The options: --bin DIR
    (of vramscope), --simgpu SCRIPT, --python PYTHON; words behind them are `names`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    parser.add_argument("--simgpu", required=True)
    parser.add_argument("--python", default=os.environ.get("VRAMSCOPE_TORCH_PYTHON", ""))
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    if not arguments.python:
        print("no PyTorch: set VRAMSCOPE_TORCH_PYTHON (scripts/torch-env prints it)")
        return SKIPPED
    return test(arguments)


def run_programs(arguments, folder, memory, program, cases, timeout_s=500, options=(), launcher=()):
    """What a program prints that is traced into the folder, on a device of so much memory, with
    options of the simulated device; `launcher`: words for Python that start it."""
    command = [arguments.bin / "vramscope", "run", "-o", f"{folder}/", "--", arguments.simgpu,
               "--memory", memory, *options, "--", arguments.python, *launcher, program, *cases]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=timeout_s, check=False,
                          env=dict(os.environ, VRAMSCOPE_LOG="error"))
    if done.returncode != 0:
        raise SystemExit(f"the programs exited with {done.returncode}:\n{done.stdout}")
    return done.stdout


def page_of(arguments, trace):
    return _report(arguments, trace)


def report_of(arguments, trace):
    return json.loads(_report(arguments, trace, "--json"))


def reports_of(arguments, folder, with_pages=False):
    """{pid: report} of the traces in a folder; with pages (report, page)."""
    reports = {}
    for trace in sorted(pathlib.Path(folder).rglob("*.vscope")):
        report = report_of(arguments, trace)
        page = page_of(arguments, trace) if with_pages else None
        reports[report["process"]["pid"]] = (report, page) if with_pages else report
    return reports


def _report(arguments, trace, *options):
    return subprocess.run([arguments.bin / "vramscope", "report", *options, trace],
                          stdout=subprocess.PIPE, text=True, check=True).stdout


def tell(word, programs, faults):
    """Prints (case, fault) pairs and a closing line; the exit status."""
    for case, fault in faults:
        print(f"{word} {case}: {fault}")
    print(f"{programs} programs, {len(faults)} findings that are wrong")
    return 1 if faults else 0
