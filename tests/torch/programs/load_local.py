# SPDX-License-Identifier: Apache-2.0
"""Runs another program with the stand-ins loaded by this process itself, RTLD_LOCAL,
before PyTorch: the layout closest to a real installation, where no CUDA symbol is
in the global scope. Found by soname, so start it with

    scripts/simgpu --preload no -- python load_local.py PROGRAM [ARG ...]
"""
import ctypes
import os
import runpy
import sys

SONAMES = ("libcuda.so.1", "libcudart.so.13", "libnvidia-ml.so.1", "libcublasLt.so.13",
           "libcublas.so.13", "libcudnn.so.9")

for soname in SONAMES:
    ctypes.CDLL(soname, mode=os.RTLD_LOCAL | os.RTLD_NOW)

del sys.argv[0]
sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")
