#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No room for the output, or a closed stdout: one line on stderr, status 1, and no half file left behind.

usage: full.py --vramscope PATH --mktrace PATH
"""
import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile

TRACE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "traces", "driver.txt")
TO_STDOUT = (["--help"], ["--version"], ["env"], ["env", "--docker"], ["doctor"], ["report", "TRACE"],
             ["report", "--help"], ["timeline", "TRACE"], ["dump", "TRACE"], ["verify", "TRACE"],
             ["export", "-f", "json", "-o", "-", "TRACE"])
TO_FILE = (["export", "-f", "html", "-o", "OUT", "TRACE"], ["export", "-f", "json", "-o", "OUT", "TRACE"],
           ["export", "-f", "sqlite", "-o", "OUT", "TRACE"], ["pack", "--yes", "-o", "OUT", "TRACE"],
           ["redact", "-o", "OUT", "TRACE"])
# Written to a file first, which is not to become the stdout that is closed.
PASSED_ON = (["export", "-f", "sqlite", "-o", "-", "TRACE"], ["redact", "-o", "-", "TRACE"])
LIMIT_BYTES = 512


def limit_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT_BYTES, LIMIT_BYTES))


def close_stdout():
    os.close(sys.stdout.fileno())


def complaint(name, done):
    told = [line for line in done.stderr.splitlines() if line]
    if done.returncode != 1:
        return f"{name}: status {done.returncode}, expected 1"
    if len(told) != 1 or not told[0].startswith("vramscope: "):
        return f"{name}: not one line on stderr: {told}"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vramscope", required=True)
    parser.add_argument("--mktrace", required=True)
    arguments = parser.parse_args()
    found = []
    with tempfile.TemporaryDirectory(prefix="vs-full-") as folder:
        trace = os.path.join(folder, "t.vscope")
        subprocess.run([arguments.mktrace, TRACE, trace], check=True)
        before = sorted(os.listdir(folder))

        def words(command):
            return [arguments.vramscope, *(trace if word == "TRACE" else word for word in command)]

        for command in TO_STDOUT:
            with open("/dev/full", "wb") as full:
                done = subprocess.run(words(command), stdout=full, stderr=subprocess.PIPE, text=True, check=False)
            found.append(complaint(f"{' '.join(command)} >/dev/full", done))
        for command in (*TO_STDOUT, *PASSED_ON):
            done = subprocess.run(words(command), preexec_fn=close_stdout, stderr=subprocess.PIPE, text=True, check=False)
            found.append(complaint(f"{' '.join(command)} >&-", done))
        for command in PASSED_ON:
            done = subprocess.run(words(command), env={**os.environ, "TMPDIR": folder + "/none"}, check=False,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            found.append(complaint(f"{' '.join(command)} without a TMPDIR", done))
            if "TMPDIR" not in done.stderr:
                found.append(f"{' '.join(command)}: does not say that TMPDIR is wrong: {done.stderr}")
        for command in TO_FILE:
            done = subprocess.run(words(command), cwd=folder, preexec_fn=limit_files, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True, check=False)
            name = f"{' '.join(command)} with files of at most {LIMIT_BYTES} bytes"
            found.append(complaint(name, done))
            if not re.search("OUT|stdout|TMPDIR", done.stderr):
                found.append(f"{name}: does not say what could not be written: {done.stderr}")
            left = sorted(set(os.listdir(folder)) - set(before))
            if left:
                found.append(f"{name}: left {left}")
    found = [one for one in found if one is not None]
    for one in found:
        print("DIFFERENT", one)
    print(f"{2 * len(TO_STDOUT) + 2 * len(PASSED_ON) + len(TO_FILE)} commands without room, {len(found)} findings")
    return 1 if found else 0


sys.exit(main())
