#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the shim's stack tests by name: run.py [--list] NAME… Exit status 0 all
hold, 1 a check failed, 77 the machine lacks what the test needs. The build is
VS_TEST_BUILD; VS_TEST_SLOW=1 chooses the long numbers."""

import sys

import stack_traces  # first: it shows the way to lab
import lab
import test_hard
import test_merged
import test_versions
import test_whole

TESTS = {name[5:]: getattr(module, name)
         for module in (test_whole, test_hard, test_merged, test_versions) for name in dir(module) if name.startswith("test_")}


if __name__ == "__main__":
    sys.exit(lab.run_named(TESTS, sys.argv[1:]))
