# SPDX-License-Identifier: Apache-2.0
"""A loop that makes and destroys a communicator in each of 24 steps, the library looked up as
Python does; with `leak` one more in each step that stays.

usage: communicators_program.py LIBRARY [leak]
"""
import ctypes
import sys

STEPS = 24


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]


def make(library):
    communicator = ctypes.c_void_p()
    assert library.ncclCommInitRank(ctypes.byref(communicator), 4, UniqueId(), 1) == 0
    return communicator


def step(library, leak):
    communicator = make(library)
    if leak:
        kept.append(make(library))  # LEAK
    assert library.ncclCommDestroy(communicator) == 0


kept = []
nccl = ctypes.CDLL(sys.argv[1])
vramscope_step = ctypes.CDLL(None).vramscope_step
vramscope_step.argtypes = [ctypes.c_uint64]
vramscope_step.restype = None
for number in range(STEPS):
    vramscope_step(number)
    step(nccl, "leak" in sys.argv[2:])
