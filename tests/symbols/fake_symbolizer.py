# SPDX-License-Identifier: Apache-2.0
"""A symbolizer that answers sensibly but for what its first argument names: the
tests copy it with an interpreter line and a mode. Speaks collector/symbol_wire.h."""

import os
import socket
import struct
import sys
import time

MODE = "@MODE@"


def bad(address):
    """The addresses at which this one goes wrong."""
    return MODE.startswith("always") or address & 0xff == 0xbb


def go_wrong(channel):
    if MODE.endswith("crash"):
        os.abort()
    elif MODE.endswith("hang"):
        time.sleep(3600)
    elif MODE.endswith("nonsense"):
        channel.send(os.urandom(200))
    elif MODE.endswith("end"):
        sys.exit(0)


def main():
    channel = socket.socket(fileno=0)
    if MODE == "mute":
        time.sleep(3600)
    channel.send(struct.pack("<I", 99 if MODE == "version" else 1))
    while request := channel.recv(1 << 16):
        count, plain, _, _ = struct.unpack_from("<IIII", request)
        for address in struct.unpack_from(f"<{count}Q", request, 36):
            if bad(address):
                go_wrong(channel)
            name = f"plain_{address:x}" if plain else f"function_{address:x}"
            channel.send(struct.pack("<QIII", address, 0, 1, 7) + name.encode() + b"\0file.c\0")


main()
