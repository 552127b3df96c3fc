#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads a .vscope trace with the reader of the Python wheel, which is made from docs/format.md alone,
with no other code of this project: shows that the document is enough. Prints the lines that
trace-dump prints: reader.py FILE. Of several files it writes them into FILE.python, which is not there
where it refuses one: reader.py --each FILE…"""
import contextlib
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts/packaging/reader"))
from vramscope_reader.trace import NotATrace, Trace  # noqa: E402


def print_definitions(trace):
    for ident, text in sorted(trace.strings.items()):
        print("string", ident, text)
    for ident, name in sorted(trace.threads.items()):
        print("thread", ident, name)
    for _, row in sorted(trace.modules.items()):
        print("module", *row[:5], row[5].hex(), row[6].decode())
    for _, row in sorted(trace.stacks.items()):
        print("stack", *row[:2], *row[2])
    for _, row in sorted(trace.codes.items()):
        print("code", *row[:2], row[2].decode(), row[3].decode())
    for _, rows in sorted(trace.symbols.items()):
        for row in rows:
            print("symbol", *row[1:5], row[5].decode(), row[6].decode())
    for _, row in sorted(trace.devices.items()):
        print("device", *row[:3], row[3].hex(), row[4].hex(), row[5].decode(), row[6].decode())
    for name, fields in sorted(trace.facts.items()):
        print("meta", name, json.dumps(fields, separators=(",", ":"), ensure_ascii=False))


def print_all(path):
    trace = Trace(path)
    shown = 0
    for event in trace.events():
        print("event", *event)
        shown += 1
    print_definitions(trace)
    status = trace.status
    print("status", shown, status.holes, status.missing, len(trace.live), int(status.closed))
    if status.cut_gaps:
        print("cut", status.cut_events, status.cut_gaps)
    trace.close()


def main():
    if sys.argv[1] != "--each":
        try:
            print_all(sys.argv[1])
        except NotATrace as error:
            sys.exit(str(error))
        return
    for path in sys.argv[2:]:
        try:
            with open(path + ".python", "w", encoding="utf-8") as out, contextlib.redirect_stdout(out):
                print_all(path)
        except NotATrace:
            os.remove(path + ".python")


main()
