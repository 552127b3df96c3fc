# SPDX-License-Identifier: Apache-2.0
"""Python code that runs where nobody called it: signals, collections, tracing, callbacks, imports."""
import gc
import importlib
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
import weakref

from cases_calls import coroutines, generators, hot, recursion, through_c
from lab import capture, check, counts, fail, here


def busy(rounds):
    for _ in range(rounds):
        generators()
        through_c()
        recursion(8)


def signals(seconds):
    taken, choice = [0], random.Random(1)

    def handler(_signal, _frame):
        taken[0] += 1
        check("signal handler", capture(), here())
        signal.setitimer(signal.ITIMER_REAL, choice.uniform(0.00005, 0.001))

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.0005)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        busy(1)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
    if taken[0] < 20:
        fail("signal handler", "only %d signals" % taken[0])


class Cycle:
    """Found by the collector, wherever that happens to run."""

    def __init__(self):
        self.me = self

    def __del__(self):
        check("__del__ in a collection", capture(), here())


def closure_maker(value):
    """Cells and generators are made before a frame's first line."""
    def read():
        return value, kept
    kept = value
    return read


def suspended():
    try:
        yield 1
    finally:
        check("a generator's end in a collection", capture(), here())


def collections(times):
    before = gc.get_threshold()
    # Each new container may set it off.
    gc.set_threshold(1, 1, 1)
    for i in range(times):
        Cycle()
        closure_maker(i)()
        begun = suspended()
        next(begun)
        trap = [begun]
        trap.append(trap)
        del begun, trap
        [closure_maker(j)() for j in range(3)]
        list(x for x in range(2))
        sorted([2, 1], key=lambda v: (v, [v])[0])
    gc.set_threshold(*before)
    gc.collect()


def gc_callbacks():
    def callback(_phase, _info):
        check("gc callback", capture(), here())
    gc.callbacks.append(callback)
    gc.collect()
    gc.callbacks.remove(callback)


class Referenced:
    pass


def weak_references():
    def on_death(_reference):
        check("weakref callback", capture(), here())

    def make():
        referenced = Referenced()
        return weakref.ref(referenced, on_death)
    for _ in range(20):
        reference = make()
    space = {}
    exec("def f(): pass", space)
    reference = weakref.ref(space["f"].__code__, lambda _: check("weakref of a code object", capture(), here()))
    space.clear()
    return reference


def traced():
    state = {"busy": False, "left": 400}

    def trace(frame, _event, _argument):
        if not state["busy"] and state["left"] > 0:
            state["busy"] = True
            state["left"] -= 1
            check("trace function", capture(), here())
            state["busy"] = False
        frame.f_trace_opcodes = state["left"] % 2 == 0
        return trace

    def profile(_frame, _event, _argument):
        if not state["busy"] and state["left"] > 0:
            state["busy"] = True
            state["left"] -= 1
            check("profile function", capture(), here())
            state["busy"] = False

    sys.settrace(trace)
    busy(1)
    coroutines()
    sys.settrace(None)
    state["left"] = 400
    sys.setprofile(profile)
    busy(1)
    hot(3)
    sys.setprofile(None)


def monitored():
    if not hasattr(sys, "monitoring"):
        return
    events, tool = sys.monitoring.events, sys.monitoring.PROFILER_ID
    state = {"left": 300}

    def on_line(_code, _line):
        if state["left"] > 0:
            state["left"] -= 1
            sys.monitoring.set_events(tool, 0)
            check("monitoring callback", capture(), here())
            sys.monitoring.set_events(tool, events.LINE | events.PY_START)

    sys.monitoring.use_tool_id(tool, "test")
    sys.monitoring.register_callback(tool, events.LINE, on_line)
    sys.monitoring.register_callback(tool, events.PY_START, on_line)
    sys.monitoring.set_events(tool, events.LINE | events.PY_START)
    busy(1)
    sys.monitoring.set_events(tool, 0)
    sys.monitoring.free_tool_id(tool)


def imports():
    folder = tempfile.mkdtemp()
    with open(os.path.join(folder, "imported_by_test.py"), "w") as module:
        module.write("from lab import capture, check, here\ncheck('import', capture(), here())\nimport imported_too\n")
    with open(os.path.join(folder, "imported_too.py"), "w") as module:
        module.write("from lab import capture, check, here\ncheck('nested import', capture(), here())\n"
                     "def __getattr__(name): return check('module attribute', capture(), here())\n")
    sys.path.insert(0, folder)
    importlib.invalidate_caches()
    importlib.import_module("imported_by_test")
    sys.modules["imported_too"].nothing
    sys.path.remove(folder)
    shutil.rmtree(folder)


def audit_hook():
    """Cannot be taken away again: the last thing to be done."""
    state = {"left": 50}

    def hook(_event, _arguments):
        if state["left"] > 0:
            state["left"] -= 1
            check("audit hook", capture(), here())
    sys.addaudithook(hook)
    busy(1)


def all_of_it(rounds, slow):
    assert threading.current_thread() is threading.main_thread()
    imports()
    for _ in range(rounds):
        weak_references()
        gc_callbacks()
        traced()
        monitored()
    collections(3000 if slow else 200)
    signals(10 if slow else 0.3)
    print("  frames being entered, which CPython hides: %d" % counts["entering"])
    audit_hook()
