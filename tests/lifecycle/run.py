#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs life-cycle tests by name: run.py [--list] NAME… Exit status 0 all hold,
1 a check failed, 77 the machine lacks what the test needs. The build is
VS_TEST_BUILD; VS_TEST_SLOW=1 chooses the long numbers."""

import sys

import lab
import test_behaviour
import test_doctor
import test_driver
import test_ends
import test_kill
import test_loader
import test_load
import test_private
import test_root

MODULES = (test_driver, test_kill, test_load, test_loader, test_behaviour, test_ends, test_private, test_doctor,
           test_root)
TESTS = {name[5:]: getattr(module, name)
         for module in MODULES for name in dir(module) if name.startswith("test_")}


if __name__ == "__main__":
    sys.exit(lab.run_named(TESTS, sys.argv[1:]))
