# SPDX-License-Identifier: Apache-2.0
"""`vramscope …` and `python -m vramscope …`: becomes the program that the wheel carries."""

import os
import sys

from vramscope import program


def main():
    path = program()
    try:
        os.execv(path, ["vramscope", *sys.argv[1:]])
    except OSError as error:
        print(f"vramscope: cannot run {path}: {error.strerror}: install the wheel again", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
