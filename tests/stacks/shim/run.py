#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the shim's stack tests by name: run.py [--list] NAME… Exit status 0 all
hold, 1 a check failed, 77 the machine lacks what the test needs. The build is
VS_TEST_BUILD; VS_TEST_SLOW=1 chooses the long numbers."""

import sys
import traceback

import stack_traces  # first: it shows the way to lab
import lab
import test_hard
import test_whole

TESTS = {name[5:]: getattr(module, name)
         for module in (test_whole, test_hard) for name in dir(module) if name.startswith("test_")}


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
    return 1 if 1 in results else lab.SKIPPED if lab.SKIPPED in results else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
