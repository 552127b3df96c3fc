#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python module and its pytest plugin, on real PyTorch: which limits hold, what is said where
nothing records, and that marks, steps and phases are in the trace.

usage: python_module.py --bin DIR --simgpu SCRIPT [--python PYTHON]
Exit status: 0 as it should be, 1 not, 77 no PyTorch (or no pytest) here.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SKIPPED = 77
HERE = pathlib.Path(__file__).resolve().parent
MODULE = HERE.parent.parent / "scripts" / "packaging" / "python"
PYTEST = ["-m", "pytest", "-p", "vramscope.pytest_plugin", "-p", "no:cacheprovider", "-rA", "--tb=short"]

PASSED = {"test_exactly_the_limit", "test_what_was_held_before_does_not_count", "test_without_a_limit"}
FAILED = {"test_over_the_limit", "test_that_fails_by_itself", "test_with_a_wrong_size"}
UNCHECKED = """
import pytest, vramscope
@pytest.mark.limit_device_memory("1 B")
def test_nothing_records():
    vramscope.begin("phase"); vramscope.mark("mark"); vramscope.step(1); vramscope.end()
    vramscope.reset_peak()
    assert vramscope.peak() is None
"""


def run(command, environment, folder):
    return subprocess.run(command, env=environment, cwd=folder, timeout=500, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)


def faults_of_limits(arguments, environment, folder):
    trace = f"{folder}/trace.vscope"
    done = run([str(arguments.bin / "vramscope"), "run", "-o", trace, "--", arguments.simgpu, "--memory",
                "4G", "--", arguments.python, *PYTEST, str(HERE / "programs" / "limits.py")], environment, folder)
    by_result = {result: set(re.findall(rf"^{result} \S*::(\w+)", done.stdout, re.M))
                 for result in ("PASSED", "FAILED", "ERROR")}
    faults = []
    if by_result != {"PASSED": PASSED, "FAILED": FAILED, "ERROR": set()} or done.returncode != 1:
        faults.append(f"exit {done.returncode}, {by_result}:\n{done.stdout}")
    for words in ("device 0: PyTorch had 26.0 MiB more allocated than when the test began, 2.0 MiB over the "
                  "limit of 24.0 MiB", "its own failure", 'takes a size like "24 MiB"'):
        if words not in done.stdout:
            faults.append(f"pytest does not say: {words}\n{done.stdout}")
    dump = run([str(arguments.bin / "vramscope"), "dump", "--json", trace], environment, folder).stdout
    for words in ("test_over_the_limit", "in the middle"):
        if words not in dump:
            faults.append(f"the trace does not have: {words}")
    return faults


def faults_of_no_recording(arguments, environment, folder):
    program = pathlib.Path(folder) / "test_unchecked.py"
    program.write_text(UNCHECKED, encoding="utf-8")
    done = run([arguments.python, *PYTEST, str(program)], environment, folder)
    if done.returncode != 0 or "1 device-memory limits were not checked" not in done.stdout:
        return [f"without a recording: exit {done.returncode}\n{done.stdout}"]
    return []


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    parser.add_argument("--simgpu", required=True)
    parser.add_argument("--python", default=os.environ.get("VRAMSCOPE_TORCH_PYTHON", ""))
    arguments = parser.parse_args()
    if not arguments.python or subprocess.run([arguments.python, "-c", "import pytest"],
                                              stderr=subprocess.DEVNULL, check=False).returncode != 0:
        print("no PyTorch or no pytest: VRAMSCOPE_TORCH_PYTHON=$(scripts/torch-env)")
        return SKIPPED
    environment = dict(os.environ, OMP_NUM_THREADS="1", PYTHONPATH=str(MODULE), PYTHONDONTWRITEBYTECODE="1")
    environment.pop("LD_PRELOAD", None)
    with tempfile.TemporaryDirectory(prefix="vramscope-module-") as folder:
        faults = faults_of_limits(arguments, environment, folder)
        faults += faults_of_no_recording(arguments, environment, folder)
    for fault in faults:
        print(fault)
    print(f"{len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
