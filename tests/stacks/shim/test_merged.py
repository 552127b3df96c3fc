# SPDX-License-Identifier: Apache-2.0
"""Copies of real interpreters that were made strange: the loop without a name, a version nobody knows."""

import glob
import os
import struct
import subprocess

import lab
from stack_traces import NOTE_PYTHON_UNSUPPORTED, Trace, check_whole
from test_whole import PYTHON_PROGRAM

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


def interpreters(versions):
    """(executable, its libpython) of the newest of each version."""
    root = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    for version in versions:
        for library in sorted(glob.glob(f"{root}/versions/{version}.*/lib/libpython{version}.so.1.0"))[-1:]:
            yield os.path.join(os.path.dirname(library), "..", "bin", f"python{version}"), library


def parts_of_loop(library):
    """Addresses of the loop and of the parts of it that the compiler set apart."""
    done = subprocess.run(["nm", "-S", library], capture_output=True, text=True, check=True)
    rows = [row.split() for row in done.stdout.splitlines()]
    return [range(int(row[0], 16), int(row[0], 16) + int(row[1], 16))
            for row in rows if len(row) == 4 and row[3].split(".")[0] == LOOP]


def change(library, folder, edit):
    """A stripped copy, its bytes as `edit` returns them."""
    os.mkdir(folder)
    copy = os.path.join(folder, os.path.basename(library))
    subprocess.run(["strip", "--strip-all", "-o", copy, library], check=True)
    with open(copy, "r+b") as file:
        image = edit(file.read())
        file.seek(0)
        file.write(image)
    return copy


def with_library(copy, command):
    """A program that loads the copy."""
    script = 'LD_LIBRARY_PATH=%s:$LD_LIBRARY_PATH exec "$@"' % os.path.dirname(copy)
    return ["sh", "-c", script, "sh", *command]


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
    copy = change(library, room.path(os.path.basename(library)),
                  lambda image: image.replace(LOOP.encode(), UNKNOWN.encode()))
    ended = room.preloaded(with_library(copy, [python, "-c", PROGRAM]))
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
    found = list(interpreters(VERSIONS))
    if not found:
        raise lab.Skip("no shared libpython from 3.11 on under pyenv")
    for python, library in found:
        compare(room, python, library)


def of_later_version(image, version):
    """Wherever it says its version it says 3.16."""
    return image.replace(struct.pack("<I", version), struct.pack("<I", 0x031000f0))


def free_threaded(image, version):
    """The published offsets say it is, and are not those of a free-threaded build."""
    at = image.index(b"xdebugpy" + struct.pack("<Q", version)) + 16
    return image[:at] + struct.pack("<Q", 1) + image[at + 8:]


def native_only(room, python, copy, version):
    command = with_library(copy, [python, "-c", PYTHON_PROGRAM])
    ended = room.preloaded(command)
    lab.equal(f"{python}: {ended.err}", ended.status, 0)
    warning = f"Python {version} is not one whose frames can be read: native stacks only"
    lab.check(ended.err.count("\n") == 1 and warning in ended.err, f"one warning: {ended.err!r}")
    trace = Trace(room.wait_for_traces(1)[0])
    room.empty_traces()
    for event in check_whole(trace):
        stack = trace.stack_of(event)
        lab.check(stack["native"] and not stack["python"], f"native frames alone: {stack}")
        lab.equal("notes", stack["notes"], [NOTE_PYTHON_UNSUPPORTED])
    done = room.run(room.on_simgpu([lab.TOOL, "doctor", "--", *command]))
    lab.equal(f"doctor: {done.out}{done.err}", done.status, 0)
    lab.check(warning in done.out, f"doctor does not say it: {done.out}")


def test_unknown_python(room):
    """Native stacks, one warning, and doctor says so: a later version, a build of another kind."""
    lab.need("strip")
    for python, library in interpreters(("3.13",)):
        done = subprocess.run([python, "-c", "import sys; print(sys.hexversion)"],
                              capture_output=True, text=True, check=True)
        version = int(done.stdout)
        for edit, name in ((of_later_version, "3.16"), (free_threaded, "3.13")):
            copy = change(library, room.path(name), lambda image: edit(image, version))
            native_only(room, python, copy, name)
        return
    raise lab.Skip("no shared libpython 3.13 under pyenv")
