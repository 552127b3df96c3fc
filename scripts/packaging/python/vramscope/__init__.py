# SPDX-License-Identifier: Apache-2.0
"""What a program may tell vramscope of itself, and ask it:

    vramscope.step(number)          a training step begins
    vramscope.mark("epoch 3")       a point in time with a name
    with vramscope.phase("eval"):   the same as begin("eval") … end()
    vramscope.peak()                the most that PyTorch held on device 0 so far, in bytes

Nothing here starts a recording. Where none runs (the program was not started by
`vramscope run`, nor with libvramscope.so in LD_PRELOAD), all of it does nothing, and peak() is None.
"""

import contextlib
import ctypes
import os
import typing

__all__ = ["Peak", "begin", "end", "is_loaded", "mark", "peak", "phase", "program", "reset_peak", "step"]



class Peak(typing.NamedTuple):
    """Bytes of one device by PyTorch's own count; `now` is what is allocated at this moment."""

    allocated: int
    reserved: int
    now: int


_Bytes = ctypes.c_uint64 * len(Peak._fields)

# Of vramscope.h.
_NAMES = {
    "vramscope_mark": [ctypes.c_char_p],
    "vramscope_step": [ctypes.c_uint64],
    "vramscope_begin": [ctypes.c_char_p],
    "vramscope_end": [],
    "vramscope_peak": [ctypes.c_int, ctypes.POINTER(_Bytes)],
    "vramscope_reset_peak": [ctypes.c_int],
}


def _find_calls():
    """What the preloaded library exports; {} without it."""
    if os.name != "posix":
        return {}
    program_itself = ctypes.CDLL(None)
    calls = {}
    for name, arguments in _NAMES.items():
        try:
            calls[name] = getattr(program_itself, name)
        except AttributeError:
            return {}
        calls[name].argtypes = arguments
        calls[name].restype = ctypes.c_int if name == "vramscope_peak" else None
    return calls


_calls = _find_calls()


def is_loaded():
    """Whether libvramscope.so is in this process."""
    return bool(_calls)


def program():
    """Path of the `vramscope` command that came with this module."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "vramscope")


def mark(text):
    """A point in time with a name."""
    if _calls:
        _calls["vramscope_mark"](text.encode())


def step(number):
    """Training step `number` begins."""
    if _calls:
        _calls["vramscope_step"](number)


def begin(name):
    """A phase begins; phases nest, per thread."""
    if _calls:
        _calls["vramscope_begin"](name.encode())


def end():
    """The innermost phase of this thread ends."""
    if _calls:
        _calls["vramscope_end"]()


@contextlib.contextmanager
def phase(name):
    """A phase for the length of a with block."""
    begin(name)
    try:
        yield
    finally:
        end()


def peak(device=0):
    """A Peak of the device with this number, since the start or reset_peak(). None while PyTorch has
    reported nothing there: another framework, or no recording."""
    figures = _Bytes()
    if not _calls or _calls["vramscope_peak"](device, ctypes.byref(figures)) != 0:
        return None
    return Peak(*figures)


def reset_peak(device=0):
    """Peaks of this device start anew from what is held now."""
    if _calls:
        _calls["vramscope_reset_peak"](device)
