#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs one test of tests/symbols: run.py NAME. Exit status 77: skipped, with the reason."""

import sys
import traceback

import symbol_lab  # finds the life-cycle tests' lab
import test_client
import test_oracle
import test_trace
from lab import SKIPPED, Failed, Skip


def main():
    name = "test_" + sys.argv[1]
    for module in (test_oracle, test_client, test_trace):
        if hasattr(module, name):
            return getattr(module, name)()
    raise Failed(f"no test {sys.argv[1]}")


if __name__ == "__main__":
    try:
        main()
    except Skip as reason:
        print(f"{sys.argv[1]}: skipped: {reason}")
        sys.exit(SKIPPED)
    except Failed as failure:
        traceback.print_exc()
        print(f"{sys.argv[1]}: FAILED: {failure}")
        sys.exit(1)
