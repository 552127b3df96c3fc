# SPDX-License-Identifier: Apache-2.0
"""XXH64 with seed 0, by the module xxhash where it is installed, else in Python alone: a checksum
of every chunk is part of the format."""
import struct

try:
    from xxhash import xxh64_intdigest as _native
except ImportError:
    _native = None

_M = (1 << 64) - 1
_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def _turn(value, bits):
    return (value << bits | value >> 64 - bits) & _M


def _round(lane, word):
    return _turn(lane + word * _P2 & _M, 31) * _P1 & _M


def _stripes(data, end):
    """The four lanes over whole stripes of 32 bytes, folded into one."""
    a, b, c, d = (_P1 + _P2) & _M, _P2, 0, -_P1 & _M
    for w, x, y, z in struct.iter_unpack("<4Q", memoryview(data)[:end]):
        a = a + w * _P2 & _M
        a = ((a << 31 | a >> 33) & _M) * _P1 & _M
        b = b + x * _P2 & _M
        b = ((b << 31 | b >> 33) & _M) * _P1 & _M
        c = c + y * _P2 & _M
        c = ((c << 31 | c >> 33) & _M) * _P1 & _M
        d = d + z * _P2 & _M
        d = ((d << 31 | d >> 33) & _M) * _P1 & _M
    value = _turn(a, 1) + _turn(b, 7) + _turn(c, 12) + _turn(d, 18) & _M
    for lane in (a, b, c, d):
        value = (value ^ _round(0, lane)) * _P1 + _P4 & _M
    return value


def _in_python(data):
    bytes_, at = len(data), len(data) // 32 * 32
    value = (_stripes(data, at) if at else _P5) + bytes_ & _M
    while bytes_ - at >= 8:
        word, = struct.unpack_from("<Q", data, at)
        value = _turn(value ^ _round(0, word), 27) * _P1 + _P4 & _M
        at += 8
    if bytes_ - at >= 4:
        word, = struct.unpack_from("<I", data, at)
        value = _turn(value ^ word * _P1 & _M, 23) * _P2 + _P3 & _M
        at += 4
    for byte in data[at:]:
        value = _turn(value ^ byte * _P5 & _M, 11) * _P1 & _M
    value = (value ^ value >> 33) * _P2 & _M
    value = (value ^ value >> 29) * _P3 & _M
    return value ^ value >> 32


xxh64 = _native or _in_python
