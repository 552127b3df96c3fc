# SPDX-License-Identifier: Apache-2.0
"""The columns of an unpacked payload: docs/format.md §5. Whatever does not fit raises ValueError."""
from itertools import accumulate

M64 = (1 << 64) - 1
BYTES, VARINT, DELTA, RUNS, DELTA_RUNS, BACK, SPLIT, SPLIT_DELTA, TOTALS = range(9)
MOST_VALUES = 64 << 20
# Values of SPLIT whose low bits are taken out of one number: long numbers are slow to shift.
TOGETHER = 256


def varint(data, at):
    """(value, where the next one begins)."""
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("a number that does not end")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if value > M64:
                raise ValueError("a number over 64 bits")
            return value, at
        shift += 7


def varints(data):
    """All of `data`."""
    if data.isascii():
        return list(data)
    out, value, shift = [], 0, 0
    for byte in data:
        if byte < 128:
            out.append(value | byte << shift if shift else byte)
            value = shift = 0
        else:
            value |= (byte & 127) << shift
            shift += 7
    if shift or max(out, default=0) > M64:
        raise ValueError("a number that does not end, or over 64 bits")
    return out


def unzigzag(value):
    return value >> 1 ^ -(value & 1)


def _sums(values):
    """Values from their differences, modulo 2^64."""
    return [value & M64 for value in accumulate(values)]


def _runs(numbers, most):
    if len(numbers) % 2:
        raise ValueError("a run without a value")
    lengths = numbers[::2]
    if 0 in lengths or sum(lengths) > most:
        raise ValueError("runs that do not fit")
    out = []
    for length, value in zip(lengths, numbers[1::2]):
        out += [value] * length
    return out


def _back(numbers):
    if len(numbers) < 2 or len(numbers) - 2 < numbers[1]:
        raise ValueError("fewer literals than said")
    unit, count = numbers[:2]
    literals = [value * unit & M64 for value in accumulate(map(unzigzag, numbers[2:2 + count]))]
    out, used = [], 0
    for back in numbers[2 + count:]:
        if back == 0 and used < count:
            out.append(literals[used])
            used += 1
        elif 0 < back <= len(out):
            out.append(out[-back])
        else:
            raise ValueError("a distance beyond the beginning")
    if used != count:
        raise ValueError("literals left over")
    return out


def _split(data, most):
    count, at = varint(data, 0)
    unit, at = varint(data, at)
    base, at = varint(data, at)
    if count > most or len(data) - at < count:
        raise ValueError("fewer values than said")
    base, leads, low, bit, out = unzigzag(base), data[at:at + count], data[at + count:], 0, []
    if leads and max(leads) > 127:
        raise ValueError("a lead beyond 127")
    for start in range(0, count, TOGETHER):
        part = leads[start:start + TOGETHER]
        end = bit + sum(lead // 2 - 1 for lead in part if lead > 3)
        word = int.from_bytes(low[bit // 8:(end + 7) // 8], "little") >> bit % 8
        for lead in part:
            if lead > 3:
                bits = lead // 2 - 1
                value = (2 | lead & 1) << bits | word & (1 << bits) - 1
                word >>= bits
            else:
                value = lead
            out.append(value * unit + base & M64)
        bit = end
    if (bit + 7) // 8 != len(low):
        raise ValueError("low bits left over, or too few")
    return out


def decoded(coding, data, most):
    """The values of a column in one of the codings 1 to 7; at most `most`."""
    if coding == VARINT:
        return varints(data)
    if coding == DELTA:
        return _sums(map(unzigzag, varints(data)))
    if coding == RUNS:
        return _runs(varints(data), most)
    if coding == DELTA_RUNS:
        return _sums(map(unzigzag, _runs(varints(data), most)))
    if coding == BACK:
        return _back(varints(data))
    if coding == SPLIT:
        return _split(data, most)
    if coding == SPLIT_DELTA:
        return _sums(_split(data, most))
    raise ValueError(f"coding {coding} of a later version")


def split_columns(payload):
    """{id: (coding, bytes)}; of an id that comes twice the later."""
    out, at = {}, 0
    while at < len(payload):
        ident, at = varint(payload, at)
        if at == len(payload):
            raise ValueError("a column without a coding")
        coding = payload[at]
        length, at = varint(payload, at + 1)
        if length > len(payload) - at:
            raise ValueError("a column longer than its chunk")
        out[ident] = coding, payload[at:at + length]
        at += length
    return out
