# SPDX-License-Identifier: Apache-2.0
"""What the shim's Python rooms read, beside what CPython itself says of the same moment.

check("name", capture(), here()) on one line compares: capture() is a C call in the
caller's frame, so nothing of ours is on the stack when it looks.
"""
import ctypes
import os
import shutil
import subprocess
import sys

LIBRARY = os.environ["FRAMES_LAB"]
free = ctypes.CDLL(LIBRARY)  # gives the GIL away around each call
held = ctypes.PyDLL(LIBRARY)  # keeps it



class Result(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_uint64), ("note", ctypes.c_int32), ("native", ctypes.c_int32),
                ("entries", ctypes.c_int32), ("frames", ctypes.c_int32), ("places", ctypes.c_int32),
                ("room", ctypes.c_uint64), ("text", ctypes.c_void_p)]


for library in (free, held):
    library.frames_capture.restype = library.frames_capture_at_most.restype = ctypes.c_void_p
    library.frames_release.argtypes = [ctypes.c_void_p]
    library.frames_release.restype = None
    library.frames_records.restype = ctypes.c_uint64
    library.frames_hits.restype = ctypes.c_uint64
    library.frames_recalled.restype = library.frames_different.restype = ctypes.c_uint64
    library.frames_version.restype = ctypes.c_uint32
    library.frames_line.restype = ctypes.c_uint32
    library.frames_line.argtypes = [ctypes.c_uint64, ctypes.c_int32]
    library.frames_message.restype = ctypes.c_char_p
    library.frames_loop.argtypes = [ctypes.c_uint64, ctypes.c_uint64]
    library.frames_break.argtypes = [ctypes.c_char_p]
    library.frames_cost.restype = ctypes.c_double

capture = free.frames_capture
capture_with_gil = held.frames_capture
here = sys._getframe

TELLS_LOOPS = sys.version_info >= (3, 11)
HAS_QUALNAME = hasattr(here().f_code, "co_qualname")
NONE, CUT, NO_FRAME, FINALIZING, UNSUPPORTED = 0, 3, 4, 5, 6

counts = {"compared": 0, "frames": 0, "entering": 0, "entries": 0}
failures = {}
_kept = []  # bytes that the library keeps a pointer to


def break_rule(rule):
    _kept.append(rule.encode())
    free.frames_break(_kept[-1])


# ---- what was captured ---------------------------------------------------------------


class Seen:
    """One capture: frames are (name, file, line, entry, entering), innermost first."""

    def __init__(self, address):
        result = Result.from_address(address)
        self.status, self.note = result.frames, result.note
        self.native, self.entries, self.places = result.native, result.entries, result.places
        text = ctypes.string_at(result.text, result.bytes).decode("utf-8") if result.bytes else ""
        held.frames_release(address)
        self.frames = []
        for record in text.split("\x1e")[:-1]:
            name, file, line, entry, entering = record.split("\x1f")
            self.frames.append((name, file, int(line), entry == "1", entering == "1"))


# ---- what CPython says ---------------------------------------------------------------


def _text(text):
    if text.isascii():
        return text
    return "".join("\ufffd" if 0xD800 <= ord(c) < 0xE000 else c for c in text)


_line_at = ctypes.pythonapi.PyCode_Addr2Line
_line_at.argtypes = [ctypes.py_object, ctypes.c_int]


def _line(frame):
    """Up to 3.9, f_lineno of a frame that was once traced is the line of the last trace event."""
    if sys.version_info < (3, 10) and frame.f_trace is not None:
        return _line_at(frame.f_code, frame.f_lasti)
    return frame.f_lineno or 0


def chain(frame):
    """[(name, file, line)] from a frame outward; line 0: none."""
    frames = []
    while frame is not None:
        code = frame.f_code
        name = code.co_qualname if HAS_QUALNAME else code.co_name
        frames.append((_text(name), _text(code.co_filename), _line(frame)))
        frame = frame.f_back
    return frames


def _merge(expected, frames):
    """None when equal, else where they part. CPython hides frames that are being entered."""
    place = 0
    for name, file, line, _, entering in frames:
        if place < len(expected) and expected[place] == (name, file, line):
            place += 1
        elif entering:
            counts["entering"] += 1
        else:
            return place
    return None if place == len(expected) else place


def fail(name, text):
    if failures.setdefault(name, 0) < 2:
        print("FAILED", name, text, flush=True)
    failures[name] += 1


def check(name, address, frame):
    """The capture made just now on the caller's line, against the chain from its frame."""
    expected = chain(frame)
    seen = Seen(address)
    counts["compared"] += 1
    counts["frames"] += len(seen.frames)
    apart = _merge(expected, seen.frames)
    if seen.status != len(seen.frames) or seen.note != NONE or apart is not None:
        at = apart or 0
        fail(name, "status %d note %d frame %d:\n  read     %s\n  expected %s"
             % (seen.status, seen.note, at, seen.frames[at:at + 2], expected[at:at + 2]))
    if TELLS_LOOPS and seen.places != seen.entries:
        fail(name, "%d calls of the interpreter loop told, %d entry frames %s"
             % (seen.places, seen.entries, seen.frames[:8]))
    # In 3.9 the chain itself ends at a generator that waits for the one being closed.
    if counts["loops"] and seen.frames and (seen.frames[-1][3] or sys.version_info[:2] != (3, 9)):
        counts["entries"] += 1
        if seen.native != seen.entries:
            fail(name, "%d calls of the interpreter loop, %d entry frames %s"
                 % (seen.native, seen.entries, seen.frames[:8]))


# ---- where the interpreter loop is ------------------------------------------------------


def _mapped(path_ends):
    """(path, base) of the first mapped file whose name begins so."""
    with open("/proc/self/maps") as maps:
        for row in maps:
            words = row.split()
            if len(words) == 6 and int(words[2], 16) == 0 and path_ends(words[5]):
                return words[5], int(words[0].split("-")[0], 16)
    return None, 0


def find_loops():
    """Tells the library where the interpreter loop lies; False when its parts are not known."""
    if shutil.which("nm") is None:
        return False
    executable = os.path.realpath(sys.executable)
    path, base = _mapped(lambda p: os.path.basename(p).startswith("libpython3"))
    if path is None:
        path, base = _mapped(lambda p: os.path.realpath(p) == executable)
    with open(path, "rb") as image:
        is_fixed = image.read(18)[16] == 2
    rows = subprocess.run(["nm", "-S", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          universal_newlines=True).stdout.split("\n")
    found = 0
    for row in rows:
        words = row.split()
        if len(words) == 4 and words[3].split(".")[0] == "_PyEval_EvalFrameDefault":
            start = int(words[0], 16) + (0 if is_fixed else base)
            free.frames_loop(start, start + int(words[1], 16))
            found += 1
    return found > 0


def open_lab(loops=True):
    free.frames_prepare()
    counts["loops"] = loops and find_loops()


def finish(least):
    """Exit status: failures, or fewer comparisons than there ought to have been."""
    print("python %s: %d comparisons, %d frames, %d frames being entered, entries counted %d times%s, "
          "%d code records, %d stacks seen again"
          % (sys.version.split()[0], counts["compared"], counts["frames"], counts["entering"], counts["entries"],
             "" if counts["loops"] else " (the loop's parts have no names)", free.frames_records(),
             free.frames_hits()))
    recalled, different = free.frames_recalled(), free.frames_different()
    print("  %d walks recalled, %d of them not the ones made" % (recalled, different))
    if different:
        failures["recalled walks"] = different
    for name, times in sorted(failures.items()):
        print("  %s: %d times" % (name, times))
    if counts["compared"] < least:
        print("FAILED: fewer than %d comparisons" % least)
        return 1
    return 1 if failures else 0
