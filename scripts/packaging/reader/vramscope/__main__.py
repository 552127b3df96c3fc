# SPDX-License-Identifier: Apache-2.0
"""`vramscope …` and `python -m vramscope …` of the wheel for any system: the reader in Python."""
import sys

from vramscope_reader.command import main

if __name__ == "__main__":
    sys.exit(main())
