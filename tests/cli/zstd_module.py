# SPDX-License-Identifier: Apache-2.0
"""zstandard for a test: where this Python does not have it, the system's own runs the test."""
import os
import sys

SYSTEM_PYTHON = "/usr/bin/python3"
TRIED = "VRAMSCOPE_TEST_PYTHON_TRIED"

try:
    import zstandard
except ImportError:
    zstandard = None
    if TRIED not in os.environ and os.access(SYSTEM_PYTHON, os.X_OK):
        os.environ[TRIED] = "1"
        os.execv(SYSTEM_PYTHON, [SYSTEM_PYTHON, *sys.argv])
