#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The oldest glibc that the programs under a folder load with, from the versions of the symbols they
take: glibc.py FOLDER prints it ("2.31"). Any library needed but glibc's own is a fault: a package
must bring what it needs."""

import os
import re
import subprocess
import sys

# What every system with glibc has.
OF_GLIBC = re.compile(r"lib(c|m|dl|pthread|rt)\.so\.\d+|ld-linux.*\.so\.\d+")


class Unfit(Exception):
    """A program that a package cannot carry; the text says which and why."""


def programs_under(folder):
    for where, _, names in sorted(os.walk(folder)):
        for name in sorted(names):
            path = os.path.join(where, name)
            with open(path, "rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield path


def readelf(option, path):
    return subprocess.run(["readelf", "-W", option, path], capture_output=True, text=True, check=True).stdout


def oldest_glibc(folder):
    """Version as a tuple: (2, 31)."""
    newest = (0, 0)
    for path in programs_under(folder):
        for library in re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("--dynamic", path)):
            if not OF_GLIBC.fullmatch(library):
                raise Unfit(f"{path} needs {library}, which is not part of glibc")
        for version in re.findall(r"Name: GLIBC_(\d+(?:\.\d+)+)", readelf("--version-info", path)):
            newest = max(newest, tuple(int(part) for part in version.split(".")))
    if newest == (0, 0):
        raise Unfit(f"no program under {folder}")
    return newest


def main():
    try:
        print(".".join(str(part) for part in oldest_glibc(sys.argv[1])))
    except (Unfit, OSError, subprocess.CalledProcessError) as error:
        print(f"glibc.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
