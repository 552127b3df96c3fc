# SPDX-License-Identifier: Apache-2.0
"""Reads a pprof profile by the field numbers of profile.proto, and checks what every
reader relies on: texts begin with "", ids lead somewhere, each sample has a value of
each type."""

import gzip


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    """[(field, value)]: numbers, or bytes."""
    at, found = 0, []
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 2:
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
            assert len(value) == length
        else:
            raise AssertionError(f"wire type {key & 7}")
        found.append((key >> 3, value))
    return found


def packed(data):
    at, values = 0, []
    while at < len(data):
        value, at = varint(data, at)
        values.append(value - (1 << 64) if value >= 1 << 63 else value)
    return values


class Profile:
    def __init__(self, data):
        top = fields(gzip.decompress(data))
        assert {number for number, _ in top} <= {1, 2, 3, 4, 5, 6, 9, 10, 11, 12, 13, 14}
        self.texts = [value.decode() for number, value in top if number == 6]
        assert self.texts[0] == "" and len(set(self.texts)) == len(self.texts)
        one = {number: value for number, value in top}
        self.types = [self.type(value) for number, value in top if number == 1]
        self.default = self.texts[one[14]]
        self.duration_ns = one.get(10, 0)
        self.comments = [self.texts[value] for number, value in top if number == 13]
        self.functions = self.table(top, 5)
        self.mappings = self.table(top, 3)
        self.locations = self.table(top, 4)
        self.samples = [self.sample(value) for number, value in top if number == 2]

    def table(self, top, wanted):
        """By id: {field: [values]}."""
        table = {}
        for number, value in top:
            if number != wanted:
                continue
            row = {}
            for field, inner in fields(value):
                row.setdefault(field, []).append(inner)
            table[row[1][0]] = row
        assert sorted(table) == list(range(1, len(table) + 1))
        return table

    def type(self, data):
        row = dict(fields(data))
        return self.texts[row[1]], self.texts[row[2]]

    def frames(self, location):
        """Innermost first: name, file, line, module, address."""
        row = self.locations[location]
        mapping = self.mappings[row[2][0]] if 2 in row else None
        address = row.get(3, [0])[0]
        if mapping:
            assert mapping[2][0] <= address < mapping[3][0], (hex(address), mapping)
        module = self.texts[mapping[5][0]] if mapping else None
        found = []
        for line in row.get(4, []):
            line = dict(fields(line))
            function = self.functions[line[1]]
            found.append((self.texts[function[2][0]], self.texts[function.get(4, [0])[0]],
                          line.get(2, 0), module, address))
        return found or [(None, "", 0, module, address)]

    def sample(self, data):
        row = {}
        for field, value in fields(data):
            row.setdefault(field, []).append(value)
        values = packed(row[2][0])
        assert len(values) == len(self.types)
        labels = {}
        for label in row.get(3, []):
            label = dict(fields(label))
            labels[self.texts[label[1]]] = self.texts[label[2]] if 2 in label else label[3]
        return {"values": dict(zip((name for name, _ in self.types), values)), "labels": labels,
                "frames": [frame for location in packed(row[1][0])
                           for frame in self.frames(location)]}
