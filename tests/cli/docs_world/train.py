# SPDX-License-Identifier: Apache-2.0
"""The "train.py" of the documentation where no PyTorch is needed: five steps on the (simulated) GPU,
each of which keeps a little, and one request too large, which it survives."""
import ctypes

runtime = ctypes.CDLL("libcudart.so.12")


def allocate(size):
    pointer = ctypes.c_void_p()
    failed = runtime.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(size))
    return None if failed else pointer


def step():
    activations = [allocate(size << 20) for size in (64, 32, 16)]
    for pointer in activations:
        runtime.cudaFree(pointer)
    return allocate(1 << 20)


kept = [step() for _ in range(5)]
assert all(kept), "no device to train on"
assert allocate(1 << 40) is None
