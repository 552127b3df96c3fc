# SPDX-License-Identifier: Apache-2.0
"""Frames of a stack with their names, innermost first: native and interpreter frames as one list
(docs/format.md §7), and which of them a place is named after."""
import re
from collections import namedtuple

NATIVE, PYTHON, NOTE = range(3)
Frame = namedtuple("Frame", "kind function file line module address own inlined")

INTERPRETER, EXACT, LOOP, ENTRY = 1 << 63, 1 << 62, 1 << 61, 1 << 62
CODE_BITS = (1 << 30) - 1
NOTES = {1: "… more native frames: cut at VRAMSCOPE_DEPTH",
         2: "native stack ends here: no unwind information",
         3: "… more Python frames: cut at VRAMSCOPE_DEPTH",
         4: "no Python code runs in this thread",
         5: "Python frames not read: the interpreter shuts down",
         6: "Python frames not read: this version of Python is not known",
         7: "Python frames missing: one of them could not be named"}
LATER_NOTE = "a remark of a later version of vramscope"
MOST_FRAMES = 65536
LIBRARY = re.compile(r"/(site|dist)-packages/|/lib(64)?/python[0-9.]+[dtm]*/")
PLUMBING = ("libc10", "libcuda", "libnvidia", "liboneflow", "libvramscope")
WRAPPERS = ("_PyEval_EvalFrame", "PyEval_EvalFrameEx", "PyEval_EvalFrame")


def base_name(path):
    return path.rsplit("/", 1)[-1] if path else path


def _text(data):
    return data.decode("utf-8", "replace") or None


def _is_function(function, name):
    """The function itself or a part of it that the compiler set apart."""
    return function.startswith(name) and (len(function) == len(name) or function[len(name)] in ".@ ")


def _is_wrapper(function):
    return any(_is_function(function or "", name) for name in WRAPPERS)


def _is_own_python(file, function):
    if file is None:
        return False
    if file.startswith("<"):
        last = (function or "").rsplit(".", 1)[-1]
        return file == "<stdin>" or file.startswith("<ipython-input") or \
            file == "<string>" and not (function and last.startswith("__"))
    return LIBRARY.search(file) is None


class Modules:
    """Which module an address belonged to, as of a generation of the module map."""

    def __init__(self, trace):
        self.rows = list(trace.modules.values())

    def at(self, address, generation):
        best = None
        for row in self.rows:
            if row[1] <= generation and row[2] <= address < row[3] and \
                    (best is None or (row[1], row[0]) > (best[1], best[0])):
                best = row
        return best


class Stacks:
    """`frames(id)`: the frames of a stack; kept for as long as this lives, one list per stack."""

    def __init__(self, trace):
        self.trace, self.modules = trace, Modules(trace)
        self.exe = trace.facts.get("process", {}).get("exe")
        if not isinstance(self.exe, str):
            self.exe = None
        self.kept, self.places = {}, {}

    def frames(self, stack):
        if stack not in self.kept:
            row = self.trace.stacks.get(stack) if stack else None
            self.kept[stack] = tuple(self._merged(row[2], row[1])) if row else ()
        return self.kept[stack]

    def interpreter_frames(self, stack):
        """The Python frames alone: all of them, however many."""
        row = self.trace.stacks.get(stack) if stack else None
        frames = [self._interpreter(word) for word in row[2] if word & INTERPRETER] if row else []
        return [frame for frame in frames if frame.kind == PYTHON]

    # ---- naming ---------------------------------------------------------------------------

    def _is_own_module(self, path):
        if not path or not self.exe or base_name(self.exe).startswith("python"):
            return False
        folder = self.exe[:len(self.exe) - len(base_name(self.exe))]
        return path == self.exe or bool(folder) and path.startswith(folder) and "/" not in path[len(folder):]

    def _place(self, word, generation):
        """(module's path, address in it, its functions from the innermost, [] when there are none)."""
        address = (word & ~(INTERPRETER | EXACT | LOOP)) - (0 if word & EXACT else 1)
        key = address, generation
        if key not in self.places:
            module = self.modules.at(address, generation)
            if module is None:
                self.places[key] = None, address & (1 << 64) - 1, []
            else:
                inside = address - module[4] & (1 << 64) - 1
                self.places[key] = _text(module[6]), inside, self.trace.symbols.get((module[0], inside), [])
        return self.places[key]

    def _native(self, place):
        path, address, symbols = place
        own = self._is_own_module(path)
        if not symbols:
            yield Frame(NATIVE, None, None, 0, path, address, own, False)
        for i, row in enumerate(symbols):
            inlined, function = i + 1 < len(symbols), _text(row[5])
            if not inlined or not _is_wrapper(function):
                yield Frame(NATIVE, function, _text(row[6]), row[4], path, address, own, inlined)

    def _interpreter(self, word):
        code, line = word >> 32 & CODE_BITS, word & 0xFFFFFFFF
        if code == 0:
            return Frame(NOTE, NOTES.get(line, LATER_NOTE), None, 0, None, line, False, False)
        row = self.trace.codes.get(code)
        function, file = (_text(row[2]), _text(row[3])) if row else (None, None)
        return Frame(PYTHON, function, file, line, None, 0, _is_own_python(file, function), False)

    # ---- the interpreter's frames in the place of its loop -------------------------------------

    def _merged(self, words, generation):
        native = [word for word in words if not word & INTERPRETER]
        others = [self._interpreter(word) for word in words if word & INTERPRETER]
        entries = [bool(word & ENTRY) for word in words if word & INTERPRETER]
        notes = [frame for frame in others if frame.kind == NOTE and frame.address in (1, 2)]
        run = [pair for pair in zip(others, entries) if pair[0] not in notes]
        marked = any(word & LOOP for word in native)
        out, at, inner = [], 0, False
        for word in native:
            place = self._place(word, generation)
            if marked:
                loop = bool(word & LOOP)
            else:
                loop, inner = _loop_by_name(place[2], inner)
            if not loop or at == len(run) or run[at][0].kind == NOTE:
                out += self._native(place)
                continue
            entry = False
            while not entry and at < len(run) and run[at][0].kind == PYTHON:
                out.append(run[at][0])
                entry = run[at][1]
                at += 1
            if at < len(run) and run[at][0].kind == NOTE and run[at][0].address == 3:
                out.append(run[at][0])
                at += 1
        out += notes
        out += [frame for frame, _ in run[at:]]
        if len(out) > MOST_FRAMES:
            out[MOST_FRAMES - 1:] = [Frame(NOTE, "… more frames than can be shown", None, 0, None, 0, False, False)]
        return out


def _loop_by_name(symbols, inner):
    """Whether functions of these names run interpreter frames: the loop, or its callers in its place."""
    if any(_is_function(_text(row[5]) or "", "_PyEval_EvalFrameDefault") for row in symbols):
        return True, True
    if any(_is_wrapper(_text(row[5])) for row in symbols):
        return not inner, False
    return False, inner


# ---- which frame names a place --------------------------------------------------------------------


def backward_node(frame):
    """"MmBackward0" of the function that runs it, or None."""
    if frame.kind != NATIVE or not (frame.function or "").startswith("torch::autograd::"):
        return None
    end = frame.function.find("::apply(")
    return None if end < 0 else frame.function[frame.function.rfind(":", 0, end) + 1:end]


def _is_plumbing(frame):
    return (base_name(frame.module) or "").startswith(PLUMBING)


def main_frame(frames):
    """Index of the frame a place is named after: the program's own Python line first; -1 without one."""
    tests = (lambda f: f.kind == PYTHON and f.own, lambda f: f.kind == NATIVE and f.own, lambda f: f.kind == PYTHON,
             lambda f: backward_node(f) is not None, lambda f: f.kind == NATIVE and not _is_plumbing(f),
             lambda f: f.kind != NOTE)
    for test in tests:
        for i, frame in enumerate(frames):
            if test(frame):
                return i
    return -1
