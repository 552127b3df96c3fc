# SPDX-License-Identifier: Apache-2.0
"""Python frames in the place of the interpreter's own, where the interpreter loop has no name."""

import glob
import os
import subprocess

import lab
from stack_traces import Trace, check_whole

VERSIONS = ("3.11", "3.13")  # the two ways in which calls of the loop are told
LOOP = "_PyEval_EvalFrameDefault"
UNKNOWN = "_PyEval_EvalFrameDefaumS"  # of the same GNU hash, so that the loader binds it all the same
NATIVE, PYTHON = 0, 1
# Allocations where calls of the loop are nested in each other in every way there is.
PROGRAM = """
import ctypes, functools, gc, weakref
cuda = ctypes.CDLL("libcuda.so.1")
context, pointer = ctypes.c_void_p(), ctypes.c_uint64()
cuda.cuInit(0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
def allocate(*_):
    cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(4096))
    cuda.cuMemFree_v2(pointer)
    return 0
class Made:
    def __init__(self, deep):
        allocate() if deep == 0 else Made(deep - 1)
    def __del__(self):
        allocate()
    def __lt__(self, other):
        allocate()
        return False
def generate(deep):
    if deep:
        yield from generate(deep - 1)
    allocate()
    yield 1
def thrown():
    try:
        yield 1
    finally:
        allocate()
def dies_with_its_frame():
    made = Made(3)
def down(n, function):
    return down(n - 1, function) if n else function()
async def wait():
    allocate()
callback = ctypes.CFUNCTYPE(ctypes.c_int)(allocate)
steps = [
    allocate, callback, dies_with_its_frame,
    lambda: list(map(allocate, range(2))),
    lambda: sorted([Made(0), Made(0)]),
    lambda: list(generate(3)),
    lambda: functools.reduce(lambda a, b: allocate(), range(3)),
    lambda: [Made(2) for _ in range(40)],
    lambda: (lambda g: (next(g), g.close()))(thrown()),
    lambda: weakref.ref(Made(1), allocate) and None,
    lambda: wait().send(None),
    lambda: exec("class Body:\\n  allocate()", globals()),
    lambda: max([1, 2], key=lambda x: list(map(allocate, [x]))),
]
for step in steps:
    for deep in (0, 20):
        try:
            down(deep, step)
        except StopIteration:
            pass
"""


def interpreters():
    """(executable, its libpython) of the newest of each version."""
    root = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    for version in VERSIONS:
        for library in sorted(glob.glob(f"{root}/versions/{version}.*/lib/libpython{version}.so.1.0"))[-1:]:
            yield os.path.join(os.path.dirname(library), "..", "bin", f"python{version}"), library


def parts_of_loop(library):
    """Addresses of the loop and of the parts of it that the compiler set apart."""
    done = subprocess.run(["nm", "-S", library], capture_output=True, text=True, check=True)
    rows = [row.split() for row in done.stdout.splitlines()]
    return [range(int(row[0], 16), int(row[0], 16) + int(row[1], 16))
            for row in rows if len(row) == 4 and row[3].split(".")[0] == LOOP]


def without_name(library, folder):
    """A copy in which nothing tells where the loop is: stripped, its exported name another one."""
    os.mkdir(folder)
    copy = os.path.join(folder, os.path.basename(library))
    subprocess.run(["strip", "--strip-all", "-o", copy, library], check=True)
    with open(copy, "r+b") as file:
        image = file.read().replace(LOOP.encode(), UNKNOWN.encode())
        file.seek(0)
        file.write(image)
    return copy


def wanted(stack, library, parts):
    """The order that names would give: each part of the loop replaced by the frames it runs."""
    merged, python = [], iter(stack["python"])
    for word in stack["native"]:
        if word["module"] == library and any(word["offset"] in part for part in parts):
            for frame in python:
                merged.append((frame["function"], frame["line"]))
                if frame["entry"]:
                    break
        else:
            merged.append(word["module"])
    return merged + [(frame["function"], frame["line"]) for frame in python]


def read(stack):
    return [(frame["function"], frame["line"]) if frame["kind"] == PYTHON else frame["module"]
            for frame in stack["merged"] if frame["kind"] in (NATIVE, PYTHON) and not frame["inlined"]]


def compare(room, python, library):
    parts = parts_of_loop(library)
    copy = without_name(library, room.path(os.path.basename(library)))
    with_copy = 'LD_LIBRARY_PATH=%s:$LD_LIBRARY_PATH exec "$@"' % os.path.dirname(copy)
    ended = room.preloaded(["sh", "-c", with_copy, "sh", python, "-c", PROGRAM])
    lab.equal(f"{python}: {ended.err}", ended.status, 0)
    trace = Trace(room.wait_for_traces(1)[0])
    room.empty_traces()
    check_whole(trace)
    alternating = 0
    for stack in trace.stacks.values():
        lab.equal(f"order of stack {stack['stack']}", read(stack), wanted(stack, copy, parts))
        kinds = [frame["kind"] for frame in stack["merged"]]
        changes = sum(one != other for one, other in zip(kinds, kinds[1:]))
        alternating += changes > 2
    lab.check(alternating > 10, f"{alternating} stacks of {len(trace.stacks)} go in and out of Python")


def test_unnamed_loop(room):
    """From 3.11 on the frames are merged alike with and without a name for the loop."""
    lab.need("strip")
    lab.need("nm")
    found = list(interpreters())
    if not found:
        raise lab.Skip("no shared libpython from 3.11 on under pyenv")
    for python, library in found:
        compare(room, python, library)
