# SPDX-License-Identifier: Apache-2.0
"""Code objects: generated ones, ones at each other's address, odd names and long line tables."""
import ctypes
import gc
import glob
import os
import sys
import types

import lab
from lab import capture, check, fail, free, here  # noqa: F401 generated code uses them


def run(source, file):
    exec(compile(source, file, "exec"), globals())


def generated():
    run("def ex():\n  \n  check('exec', capture(), here())\nex()", "<string>")
    eval("check('eval', capture(), here())")
    run("\n" * 70000 + "check('line 70,001', capture(), here())", "far.py")
    run("if 1:\n" + "  x = 1\n" * 300 + "\n" * 40000 + "  check('a jump of lines', capture(), here())", "jump.py")
    long = "".join("  v%d = %d + len('abc')\n" % (i, i) for i in range(3000))
    run("def big():\n" + long + "  check('far into the bytecode', capture(), here())\nbig()\n", "big.py")
    backwards = compile("(check('lines that run backwards', capture(),\nhere()))", "backwards.py", "eval")
    assert backwards.co_filename == "backwards.py"


def names():
    for name in ("caf\u00e9", "\u4e2d\u6587", "\U00010400x", "a\u00e9\u4e2d\U00010400", "x" * 1000):
        run("def %s():\n check('function name', capture(), here())\n%s()" % (name, name), "x.py")
    for file in ("d\u00e9j\u00e0.py", "\u4e2d.py", "\U0001F40D.py", "mixed \u00e9\u4e2d\U0001F40D", "half \ud800 pair \udcff",
                 "tab\tand\nnewline", "", "f" * 3900):
        run("check('file name', capture(), here())", file)


def cut_names():
    """What does not fit into a record keeps the end that tells more."""
    run("def %s():\n got.extend(lab.Seen(capture()).frames)\ngot = []\n%s()" % (("n" * 3000,) * 2), "/" + "d" * 6000 + "/end.py")
    name, file = globals()["got"][0][:2]
    if not (name.startswith("nnn") and name.endswith("n\u2026") and len(name.encode()) == 1024):
        fail("cut name", repr(name))
    if not (file.startswith("\u2026d") and file.endswith("d/end.py") and len(file.encode()) == 4096):
        fail("cut file", repr(file))
    run("got = []\ngot.extend(lab.Seen(capture()).frames)", "\u4e2d" * 3000 + "/end.py")
    file = globals()["got"][0][1]
    if not (file.startswith("\u2026\u4e2d") and file.endswith("\u4e2d/end.py") and len(file.encode()) > 5000):
        fail("cut file of wide characters", repr(file))


def same_address(times):
    """Code objects made and dropped: another one soon lies where the last one lay."""
    seen, again = {}, 0
    space = {"check": check, "capture": capture, "here": here}
    for i in range(times):
        kind = i % 5
        name = "f%d" % (i % 7919)
        if kind == 0:
            code = compile("check('reused exec', capture(), here())", "<reused %d>" % i, "exec")
            exec(code, space)
        elif kind == 1:
            code = compile("\n" * (i % 97) + "check('reused eval', capture(), here())", "<string>", "eval")
            eval(code, space)
        elif kind == 2:
            code = compile("def %s():\n check('reused function', capture(), here())" % name, "<string>", "exec")
            exec(code, space)
            space[name]()
            del space[name]
        elif kind == 3:
            code = changed(same_address_template.__code__, i)
            types.FunctionType(code, globals())()
        else:
            code = compile("(lambda: check('reused lambda', capture(), here()))", "<l%d>" % (i % 13), "eval")
            eval(code, space)()
        again += seen.get(id(code), i) != i
        seen[id(code)] = i
    if again < times // 4:
        fail("same address", "only %d of %d code objects lay where another one had lain" % (again, times))


def same_address_template():
    check("replaced code", capture(), here())


def changed(code, i):
    fields = {"co_firstlineno": i + 1, "co_filename": "<replaced %d>" % (i % 11)}
    if lab.HAS_QUALNAME:
        fields["co_qualname"] = "Replaced.q%d" % i
    return code.replace(co_name="r%d" % i, **fields)


def lines_of_all(files):
    """The decoder against CPython's own, at every offset of the code of many modules."""
    theirs = ctypes.pythonapi.PyCode_Addr2Line
    theirs.argtypes = [ctypes.py_object, ctypes.c_int]
    offsets = wrong = 0
    # Debian's own file of the site is a link into /etc, which may not be there.
    paths = filter(os.path.exists, sorted(glob.glob(os.path.join(os.path.dirname(os.__file__), "*.py"))))
    for path in list(paths)[:files]:
        with open(path, "rb") as source:
            pending = [compile(source.read(), path, "exec")]
        while pending:
            code = pending.pop()
            pending.extend(c for c in code.co_consts if isinstance(c, types.CodeType))
            for offset in range(-1, len(code.co_code), 1 if sys.version_info < (3, 10) else 2):
                offset = max(offset, -1)
                expected = max(theirs(code, offset), 0)
                offsets += 1
                if free.frames_line(id(code), offset) != expected:
                    wrong += 1
                    fail("line", "%s %s offset %d: not %d" % (path, code.co_name, offset, expected))
    print("  %d offsets, %d lines wrong" % (offsets, wrong))
    if offsets < 1000 * files:
        fail("line", "only %d offsets" % offsets)


def all_of_it(rounds, slow):
    for _ in range(rounds):
        generated()
        names()
    cut_names()
    same_address(60000 if slow else 20000)
    gc.collect()
    lines_of_all(200 if slow else 25)
