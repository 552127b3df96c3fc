#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares docs/format.md with the headers it describes: kinds of events, chunk types, limits.

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
    wrong += [f"table of this size found nothing: {what}" for what, rows in (("kinds", kinds), ("types", types))
              if len(rows) < 10]
    print("\n".join(wrong) or f"{len(kinds)} kinds and {len(types)} chunk types as documented")
    return 1 if wrong else 0


sys.exit(main())
