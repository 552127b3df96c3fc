# SPDX-License-Identifier: Apache-2.0
"""Reads shim/hooks.def, the one table of CUDA entry points; used by gen-hooks and check-hooks."""

import re


class Row:
    """One entry point of the table. `ptsz` tells that it is the generated `_ptsz` twin."""

    def __init__(self, name, section, line):
        self.name = name
        self.base_name = name
        self.level, self.group = section
        self.line = line
        self.asked = []  # [(name given to cuGetProcAddress, first CUDA version)]
        self.params = []  # [(C type, name)]
        self.kind = ""
        self.fields = []  # [(field, "=" or ":=", expression)]
        self.ptsz = False
        self.has_twin = False
        self.reason = ""

    @property
    def hooked(self):
        return self.group not in ("used", "left alone")


def fail(path, number, message):
    raise SystemExit(f"{path}:{number}: {message}")


def parse_params(text):
    if text in ("", "void"):
        return []
    params = []
    for part in text.split(","):
        match = re.fullmatch(r"(.*?)(\w+)", part.strip())
        params.append((match.group(1).strip(), match.group(2)))
    return params


def parse_fields(text):
    fields = []
    for part in filter(None, (piece.strip() for piece in text.split(";"))):
        match = re.fullmatch(r"(\w+)\s*(:=|=)\s*(.+)", part)
        if match is None:
            raise ValueError(f"not a field assignment: {part}")
        fields.append(match.groups())
    return fields


def parse_asked(text):
    asked = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, _, version = part.partition("@")
        asked.append((name, int(version)))
    return asked


def twin_of(row):
    """The per-thread-default-stream variant: the same arguments under another name."""
    twin = Row(row.name + "_ptsz", (row.level, row.group), row.line)
    twin.base_name = row.name
    twin.ptsz = True
    for attribute in ("asked", "params", "kind", "fields", "reason"):
        setattr(twin, attribute, getattr(row, attribute))
    return twin


def parse_row(columns, section, number):
    name = columns[0]
    twin = name.endswith("[_ptsz]")
    row = Row(name.removesuffix("[_ptsz]"), section, number)
    row.has_twin = twin
    row.asked = parse_asked(columns[1])
    if row.group == "left alone":
        row.reason = columns[2]
    elif row.hooked:
        row.params = parse_params(columns[2])
        row.kind = columns[3]
        row.fields = parse_fields(columns[4])
    return [row, twin_of(row)] if twin else [row]


def columns_wanted(section):
    return {"used": 2, "left alone": 3}.get(section[1], 5)


def read_table(path):
    """All rows in the order of the file."""
    rows, section, seen = [], None, {}
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            if line.startswith("["):
                level, _, group = line.strip("[]").partition(" ")
                section = (level, group)
                continue
            columns = [column.strip() for column in line.split("|")]
            if section is None or len(columns) != columns_wanted(section):
                fail(path, number, f"{columns_wanted(section or ('', ''))} columns wanted")
            try:
                parsed = parse_row(columns, section, number)
            except (ValueError, AttributeError) as error:
                fail(path, number, str(error))
            for row in parsed:
                if row.name in seen:
                    fail(path, number, f"{row.name} is already on line {seen[row.name]}")
                seen[row.name] = number
            rows.extend(parsed)
    return rows
