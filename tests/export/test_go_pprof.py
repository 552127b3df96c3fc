#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Go program pprof, built from Debian's golang-github-google-pprof-dev, reads an
export and finds the figures of the report: test_go_pprof.py --vramscope P --mktrace P.
Exit 77 where Go or its sources are not installed."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import lab

SOURCES = pathlib.Path("/usr/share/gocode/src/github.com/google/pprof")
CACHE = pathlib.Path(os.environ.get(
    "VRAMSCOPE_CACHE", os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")),
                                    "vramscope"))) / "go-pprof"


def build():
    tool = CACHE / "pprof"
    if tool.exists():
        return tool
    CACHE.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "GOPATH": "/usr/share/gocode", "GO111MODULE": "off",
                   "GOCACHE": str(CACHE / "build"), "GOFLAGS": ""}
    part = CACHE / f"pprof.{os.getpid()}"
    subprocess.run(["go", "build", "-o", str(part), "github.com/google/pprof"], check=True,
                   env=environment, timeout=300)
    part.rename(tool)
    return tool


def ask(tool, here, *words):
    environment = {**os.environ, "PPROF_TMPDIR": str(here.folder), "HOME": str(here.folder)}
    return subprocess.run([str(tool), *map(str, words)], env=environment, check=True, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout


def test_go_reads_it(here):
    tool = build()
    for trace in here.traces():
        out = trace.with_suffix(".pb.gz")
        here.run("export", "-f", "pprof", "-o", out, trace)
        peak = sum(device["peak"]["allocated_bytes"]
                   for device in here.json("report", "--json", trace)["devices"])
        raw = ask(tool, here, "-raw", out)
        assert "inuse_space/bytes[dflt]" in raw, raw
        sums = [int(numbers.split()[-1])
                for numbers in re.findall(r"^((?: +-?\d+){4}): ", raw, re.M)]
        assert sum(sums) == peak, (trace, sums, peak)
        top = ask(tool, here, "-top", "-unit=B", "-sample_index=inuse_space", out)
        assert peak == 0 or f"Total samples = {peak}B" in top, top
    names = ask(tool, here, "-top", "-sample_index=alloc_space", here.folder / "origins.pb.gz")
    assert "<module>" in names and "Linear.forward" in names and "(inline)" in names, names
    for device, shown in (("^0$", True), ("^1$", False)):
        chosen = ask(tool, here, "-top", f"-tagfocus=device={device}",
                     here.folder / "origins.pb.gz")
        assert ("Linear.forward" in chosen) == shown, chosen


if __name__ == "__main__":
    if shutil.which("go") is None or not SOURCES.is_dir():
        print("Go's pprof is not here: apt-get install golang-go golang-github-google-pprof-dev")
        sys.exit(77)
    lab.main([test_go_reads_it])
