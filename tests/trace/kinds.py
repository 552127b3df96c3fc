#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares docs/format.md, and the Python reader's table, with the headers: kinds of events, chunk types.

kinds.py SOURCE-FOLDER
"""
import re
import sys


def read(name):
    with open(f"{sys.argv[1]}/{name}", encoding="utf-8") as file:
        return file.read()


def main():
    document, record, chunk = read("docs/format.md"), read("formats/record.h"), read("formats/trace_chunk.h")
    table = re.sub(r'"\s+"', "", record.replace("\\\n", " "))  # a text may go over several lines
    kinds = re.findall(r"X\((\d+),\s*\w+,\s*\"(\w+)\",\s*'(\w)',\s*\"([^\"]*)\"\)", table)
    expected = {f"| {value} | `{name}` | {layer} | {fields} |" for value, name, layer, fields in kinds}
    found = set(re.findall(r"^\| \d+ \| `\w+` \| \w \| .* \|$", document, flags=re.M))
    types = re.findall(r"VS_CHUNK_(\w+) = 0x([0-9a-f]{4})", chunk)
    wrong = [f"missing: {line}" for line in sorted(expected - found)]
    wrong += [f"not in record.h: {line}" for line in sorted(found - expected)]
    wrong += [f"chunk type missing: {name}" for name, value in types
              if f"| 0x{value.upper()} | {name} |" not in document]
    sys.path.insert(0, f"{sys.argv[1]}/scripts/packaging/reader")
    from vramscope_reader import kinds as reader
    own = {(str(value), reader.NAME[value], reader.LAYER[value]) for value in reader.NAME}
    wrong += [f"Python reader's kinds: {kind}" for kind in sorted(own ^ {kind[:3] for kind in kinds})]
    wrong += [f"table of this size found nothing: {what}" for what, rows in (("kinds", kinds), ("types", types))
              if len(rows) < 10]
    print("\n".join(wrong) or f"{len(kinds)} kinds and {len(types)} chunk types as documented")
    return 1 if wrong else 0


sys.exit(main())
