# SPDX-License-Identifier: Apache-2.0
"""Daemon threads that look at their stacks without a pause while the interpreter shuts down."""
import atexit
import os
import random
import sys
import threading
import time

import lab

FINALIZED = 3
notes = []


def last():
    """Runs behind the door: only this thread may look, and sees itself."""
    lab.check("behind the end", lab.capture(), lab.here())
    deadline = time.monotonic() + 5
    while set(notes[-4:]) != {lab.FINALIZING} and time.monotonic() < deadline:
        time.sleep(0.0005)
    ok = not lab.failures and set(notes[-4:]) == {lab.FINALIZING} and lab.free.frames_state() == FINALIZED
    print("ok" if ok else "FAILED: %s %s state %d" % (lab.failures, notes[-3:], lab.free.frames_state()), flush=True)


def deep(depth, then):
    return deep(depth - 1, then) if depth else then()


def hammer():
    lab.free.frames_hammer()


def work():
    space = {"lab": lab}
    for i in range(1 << 30):
        address = lab.capture()
        notes.append(lab.Result.from_address(address).note)
        lab.held.frames_release(address)
        if i % 3 == 0:
            exec(compile("lab.held.frames_release(lab.capture())", "<%d>" % i, "exec"), space)


atexit.register(last)
lab.open_lab(loops=False)
lab.free.frames_tell_crashes()
unguarded = os.environ.get("FRAMES_BREAK") == "end"
for i in range(0 if unguarded else 5000):
    if lab.free.frames_is_watched():
        break
    time.sleep(0.001)
if not unguarded and not lab.free.frames_is_watched():
    sys.exit("nobody will tell of the end")
if unguarded:
    atexit.unregister(last)
for depth in (3, 20):
    threading.Thread(target=deep, args=(depth, hammer), daemon=True).start()
    threading.Thread(target=deep, args=(depth, work), daemon=True).start()
while not notes:
    time.sleep(0.001)
time.sleep(random.random() * 0.003)
