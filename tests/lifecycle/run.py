#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs life-cycle tests by name: run.py [--list] NAME… Exit status 0 all hold,
1 a check failed, 77 the machine lacks what the test needs. The build is
VS_TEST_BUILD; VS_TEST_SLOW=1 chooses the long numbers."""

import sys
import traceback

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


def run(name):
    room = lab.Lab()
    try:
        TESTS[name](room)
    except lab.Skip as why:
        print(f"{name}: skipped: {why}")
        return lab.SKIPPED
    except lab.Failed as why:
        print(f"{name}: FAILED: {why}")
        return 1
    except Exception:
        traceback.print_exc()
        return 1
    finally:
        room.close()
    print(f"{name}: ok")
    return 0


def main(arguments):
    if arguments == ["--list"]:
        print("\n".join(TESTS))
        return 0
    if not arguments or any(name not in TESTS for name in arguments):
        print("usage: run.py [--list] NAME…", file=sys.stderr)
        return 2
    results = [run(name) for name in arguments]
    if 1 in results:
        return 1
    return lab.SKIPPED if lab.SKIPPED in results else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
