# SPDX-License-Identifier: Apache-2.0
"""Threads: Python's own under contention, native ones that come to Python, and those that do not."""
import ctypes
import random
import sys
import threading

import lab
from lab import capture, capture_with_gil, check, fail, free, here

libc = ctypes.CDLL(None)
START = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


def go(depth, choice):
    if depth == 0:
        check("thread", capture(), here())
        check("thread, GIL held", capture_with_gil(), here())
        return
    kind = choice.randrange(5)
    if kind == 0:
        go(depth - 1, choice)
    elif kind == 1:
        [go(depth - 1, choice) for _ in range(1)]
    elif kind == 2:
        next((go(depth - 1, choice) for _ in range(1)))
    elif kind == 3:
        exec("go(depth - 1, choice)", {"go": go, "depth": depth, "choice": choice})
    else:
        sorted([1], key=lambda _: go(depth - 1, choice))


def contended(threads, times):
    def work(seed):
        choice = random.Random(seed)
        for _ in range(times):
            go(choice.randrange(1, 30), choice)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    running = [threading.Thread(target=work, args=(i,)) for i in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    sys.setswitchinterval(before)


def native_threads(times):
    def main(_argument):
        go(5, random.Random(1))
        check("native thread", capture(), here())
        return 0
    start = START(main)
    for _ in range(times):
        thread = ctypes.c_ulong()
        libc.pthread_create(ctypes.byref(thread), None, start, None)
        libc.pthread_join(thread, None)


def other_threads():
    """Without a thread state: nothing. With one and no frame: that is said."""
    for knows_python, note in ((0, lab.NONE), (1, lab.NO_FRAME)):
        got = free.frames_note_of_thread(knows_python)
        if got != note:
            fail("thread without frames", "note %d, not %d" % (got, note))


def cut(depth=40):
    if depth > 0:
        return cut(depth - 1)
    seen, expected = lab.Seen(free.frames_capture_at_most(10)), lab.chain(here())
    if seen.status != 10 or seen.note != lab.CUT or [f[:3] for f in seen.frames] != expected[:10]:
        fail("cut", "%d frames, note %d, %s" % (seen.status, seen.note, seen.frames[:2]))
    return None


def all_of_it(rounds, slow):
    contended(6, 200 * rounds if slow else 25 * rounds)
    native_threads(20 * rounds)
    other_threads()
    cut()
