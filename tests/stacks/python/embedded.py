# SPDX-License-Identifier: Apache-2.0
"""Run by frames_host, perhaps once more in the next interpreter of the same process."""
import os
import sys
import time

sys.path.insert(0, os.environ["FRAMES_CASES"])
import cases_calls  # noqa: E402
import cases_code  # noqa: E402
import lab  # noqa: E402


def alike():
    """As in the last interpreter but for the name: the same places, the same versions."""
    name = "interpreter_%03d" % (time.monotonic() * 1e5 % 1000)
    space = {"check": lab.check, "capture": lab.capture, "here": lab.here}
    exec("def %s():\n for i in range(4): check('alike', capture(), here())" % name, space)
    for _ in range(3):
        space[name]()


lab.counts["loops"] = False
alike()
deadline = time.monotonic() + 10
while not lab.free.frames_is_watched() and time.monotonic() < deadline:
    pass
if not lab.free.frames_is_watched():
    raise RuntimeError("nobody will tell of the end")
alike()
cases_calls.recursion(10)
cases_calls.generators()
# Other content in each interpreter, so that what was remembered of the last one would show.
for i in range(int(time.time() * 1000) % 7):
    compile("x = %d" % i, "x", "exec")
cases_code.same_address(2000)
if lab.free.frames_different():
    lab.fail("recalled walks", "%d of %d not the ones made" % (lab.free.frames_different(), lab.free.frames_recalled()))
if lab.failures:
    raise RuntimeError(repr(lab.failures))
