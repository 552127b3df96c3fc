#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares vramscope's names of CUDA results with the CUDA headers of this machine.

cuda_errors.py PROGRAM [INCLUDE-FOLDER]
"""
import os
import re
import subprocess
import sys


def enumerators(path, pattern):
    with open(path, encoding="utf-8", errors="replace") as header:
        text = re.sub(r"/\*.*?\*/", "", header.read(), flags=re.S)
    return {int(value, 0): name for name, value in re.findall(pattern, text)}


def ask(program, call, numbers):
    lines = "".join(f"{call} {number}\n" for number in numbers)
    done = subprocess.run([program], input=lines, capture_output=True, text=True, check=True)
    return done.stdout.split("\n")[:-1]


def main():
    program = sys.argv[1]
    folders = [f for f in sys.argv[2:] if f] + ["/usr/local/cuda/include"]
    include = next((f for f in folders if os.path.exists(f + "/cuda.h")), None)
    if include is None:
        print("skipped: no cuda.h (install a CUDA toolkit or set VS_CUDA_INCLUDE)")
        return 77
    wrong = 0
    for call, header, pattern in (
        ("cuMemAlloc_v2", "cuda.h", r"\b(CUDA_SUCCESS|CUDA_ERROR_\w+)\s*=\s*(\w+)"),
        ("cudaMalloc", "driver_types.h", r"\b(cudaSuccess|cudaError\w+)\s*=\s*(\w+)"),
    ):
        names = enumerators(f"{include}/{header}", pattern)
        if len(names) < 50:
            print(f"{header}: only {len(names)} results found in it")
            wrong += 1
        for (number, name), ours in zip(names.items(), ask(program, call, names)):
            if name != ours:
                print(f"{header}: {number} is {name}, we say {ours}")
                wrong += 1
        print(f"{header}: {len(names)} results compared")
    if ask(program, "cudaMalloc", [123456]) != ["error 123456"]:
        print("an unknown number is not called 'error N'")
        wrong += 1
    return 1 if wrong else 0


sys.exit(main())
