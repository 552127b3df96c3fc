#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Direct bytes by owner: each small library allocates a known number of bytes, and the
report gives them to the library that asked, to the byte, whichever CUDA runtime it carries.

usage: owners.py --folder LIBRARIES --bin DIR --simgpu SCRIPT
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

PROGRAM_BYTES = 3 << 20
# File, owner in the report, bytes: multiples of the device's granularity, all different.
LIBRARIES = [
    ("lib/libnccl.so.2", "libnccl", 4 << 20),
    ("lib/libcublas.so.13", "libcublas", 8 << 20),
    ("lib/libcublasLt.so.13", "libcublasLt", 32 << 20),
    ("lib/libcudnn_graph.so.9", "libcudnn_graph", 6 << 20),
    ("lib/libcufft-0123abcd.so.12", "libcufft", 10 << 20),
    ("lib/librmm.so", "librmm", 12 << 20),
    ("site-packages/cupy_backends/cuda/api/runtime.cpython-312-x86_64-linux-gnu.so", "cupy",
     14 << 20),
    ("site-packages/grouped_gemm/_kernels.abi3.so", "grouped_gemm", 18 << 20),
]


def run(command, **options):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True,
                          timeout=60, check=False, **options)
    if done.returncode != 0:
        sys.exit(f"{command[0]}: status {done.returncode}")
    return done.stdout


def main():
    parser = argparse.ArgumentParser()
    for name in ("folder", "bin", "simgpu"):
        parser.add_argument(f"--{name}", required=True, type=pathlib.Path)
    given = parser.parse_args()
    tool = given.bin / "vramscope"
    wanted = {"owners": PROGRAM_BYTES}
    wanted.update({owner: size for _, owner, size in LIBRARIES})
    with tempfile.TemporaryDirectory() as folder:
        trace = pathlib.Path(folder) / "owners.vst"
        takes = [f"{given.folder / path}={size + 1}" for path, _, size in LIBRARIES]
        run([given.simgpu, "--", tool, "run", "-o", trace, "--", given.folder / "owners",
             PROGRAM_BYTES + 1, *takes], env=dict(os.environ, VRAMSCOPE_LOG="warn"))
        report = json.loads(run([tool, "report", "--json", trace]))
        run([tool, "verify", trace])
    ends = [device["end"] for device in report["devices"]]
    found = dict(ends[0]["by_owner"])
    rounding = found.pop("(rounding)", 0)
    asked = {owner: size + 1 for owner, size in wanted.items()}
    if len(ends) != 1 or found != asked:
        sys.exit(f"by owner: {found}\nallocated: {asked}")
    if ends[0]["direct_bytes"] != sum(asked.values()) + rounding:
        sys.exit(f"direct: {ends[0]['direct_bytes']}, owners and rounding: "
                 f"{sum(asked.values()) + rounding}")
    print(f"{len(found)} owners, {sum(found.values())} bytes, {rounding} of rounding")


if __name__ == "__main__":
    main()
