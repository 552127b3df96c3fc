# SPDX-License-Identifier: Apache-2.0
"""Reads .vscope traces in Python alone, on any system: made from docs/format.md (the bytes) and
docs/numbers.md (what the figures mean). It gives what can be computed exactly from the events and
leaves the rest out: the measured bands, why a request failed, growth and fragmentation are the
native vramscope's.

    from vramscope_reader.trace import Trace
    for event in Trace("a.vscope").events(): ...
"""
import os


def version():
    """Of the wheel this came with; "0" in the source tree."""
    try:
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "VERSION"), encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return "0"
