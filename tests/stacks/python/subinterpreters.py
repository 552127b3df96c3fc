# SPDX-License-Identifier: Apache-2.0
"""Sub-interpreters: right from 3.12 on; before, the stack is that of who started them."""
import os
import sys

import lab
import cases_code

try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

INSIDE = """
import sys
sys.path.insert(0, %r)
import lab
lab.counts["loops"] = False
import cases_code, cases_calls
cases_calls.recursion(5)
cases_calls.generators()
cases_code.same_address(%d)
if lab.failures or lab.counts["compared"] < 100:
    raise RuntimeError("%%s, %%d comparisons" %% (lab.failures, lab.counts["compared"]))
"""
BEFORE = """
import sys
sys.path.insert(0, %r)
import lab
def inside():
    seen = lab.Seen(lab.capture())
    if seen.status < 1 or seen.frames[0][0] != "run" or seen.frames[-1][0] != "<module>":
        raise RuntimeError(repr(seen.frames))
inside()
"""


def create():
    if sys.version_info >= (3, 13):
        return interpreters.create("legacy")
    return interpreters.create(isolated=False) if sys.version_info >= (3, 9) else interpreters.create()


def run(interpreter, source):
    failed = interpreters.run_string(interpreter, source)
    if failed is not None:
        lab.fail("sub-interpreter", getattr(failed, "formatted", None) or repr(failed))


def starter(source, times):
    for _ in range(times):
        interpreter = create()
        run(interpreter, source)
        interpreters.destroy(interpreter)


# Each interpreter gives its code objects the versions of the last one's, and often their places.
ALIKE = """
import sys
sys.path.insert(0, %r)
import lab
lab.counts["loops"] = False
space = {"check": lab.check, "capture": lab.capture, "here": lab.here}
exec("def %s():\\n for i in range(4): check('alike', capture(), here())", space)
for _ in range(3):
    space[%r]()
if lab.failures:
    raise RuntimeError(repr(lab.failures))
"""


def alike(times):
    for i in range(times):
        name = "interpreter_%03d" % i
        interpreter = create()
        run(interpreter, ALIKE % (folder, name, name))
        interpreters.destroy(interpreter)


lab.open_lab(loops=False)
cases_code.same_address(500)
folder = os.path.dirname(os.path.abspath(__file__))
if sys.version_info >= (3, 12):
    starter(INSIDE % (folder, 500), 4)
    alike(8)
else:
    starter(BEFORE % folder, 4)
cases_code.same_address(500)
sys.exit(lab.finish(1000))
