# SPDX-License-Identifier: Apache-2.0
"""Whole programs in every version of Python the machine has: each event's stack as CPython tells it."""

import glob
import json
import os
import shutil

import lab
from stack_traces import Trace, check_whole
from test_merged import NATIVE, PROGRAM, PYTHON

VERSIONS = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14", "3.15")
BROUGHT = ("3.14", "3.15")  # by scripts/python-env
# In the line that allocates: CPython's own view of it, kept under the size that is asked for.
PLAIN = "ctypes.c_size_t(4096)"
TOLD = "ctypes.c_size_t(tell())"
TELL = """
import json, sys
told = []
def tell():
    stack, frame = [], sys._getframe(1)
    while frame:
        code = frame.f_code
        stack.append([getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno])
        frame = frame.f_back
    told.append(stack)
    return 4096 * len(told)
"""
SHOW = "\nprint(json.dumps(told))\n"


def interpreters():
    """(version, executable), the newest of each version."""
    root = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    for version in VERSIONS:
        installed = sorted(glob.glob(f"{root}/versions/{version}.*/bin/python{version}"))
        found = installed[-1:] or [shutil.which(f"python{version}", path=os.environ.get("VRAMSCOPE_PYTHONS", ""))]
        if found[0] is not None:
            yield version, found[0]


def check_version(room, version, python):
    ended = room.preloaded([python, "-c", TELL + PROGRAM.replace(PLAIN, TOLD) + SHOW])
    lab.equal(f"{python}: {ended.err}", (ended.status, ended.err), (0, ""))
    told = json.loads(ended.out)
    trace = Trace(room.wait_for_traces(1)[0])
    room.empty_traces()
    check_whole(trace)
    made = trace.of_kind("alloc")
    lab.equal(f"{version}: allocations", len(made), len(told))
    alternating = 0
    for event in made:
        stack = trace.stack_of(event)
        wanted = told[event["size"] // 4096 - 1]
        lab.equal(f"{version}: stack of {event}",
                  [[frame["function"], frame["file"], frame["line"]] for frame in stack["python"]], wanted)
        merged = [frame for frame in stack["merged"] if not frame["inlined"]]
        lab.equal(f"{version}: merged stack of {event}",
                  [[frame["function"], frame["line"]] for frame in merged if frame["kind"] == PYTHON],
                  [[name, line] for name, _, line in wanted])
        kinds = [frame["kind"] for frame in merged if frame["kind"] in (NATIVE, PYTHON)]
        alternating += sum(one != other for one, other in zip(kinds, kinds[1:])) > 2
    lab.check(alternating > 10, f"{version}: {alternating} stacks of {len(made)} go in and out of Python")


def test_versions(room):
    """Function, file and line of every frame, and their order among the native ones."""
    found = dict(interpreters())
    for version, python in found.items():
        check_version(room, version, python)
    missing = [version for version in BROUGHT if version not in found]
    if missing:
        raise lab.Skip(f"no Python {', '.join(missing)}: scripts/python-env brings them")
