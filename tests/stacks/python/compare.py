# SPDX-License-Identifier: Apache-2.0
"""All cases in one interpreter: compare.py [--slow] [--break RULE]; exit status 0: not one difference."""
import argparse
import sys
import time

import lab

parser = argparse.ArgumentParser()
parser.add_argument("--slow", action="store_true")
parser.add_argument("--only", help="one room of cases")
parser.add_argument("--break", dest="rule", help="breaks one rule of the walk: the comparison has to notice")
arguments = parser.parse_args()

lab.open_lab()
lab.check("first", lab.capture(), lab.here())
if arguments.rule:
    lab.break_rule(arguments.rule)

import cases_calls  # noqa: E402
import cases_code  # noqa: E402
import cases_interrupts  # noqa: E402
import cases_threads  # noqa: E402

rounds = 20 if arguments.slow else 3
for name, run in (("calls", lambda: cases_calls.all_of_it(rounds * 3)),
                  ("code", lambda: cases_code.all_of_it(rounds, arguments.slow)),
                  ("threads", lambda: cases_threads.all_of_it(rounds, arguments.slow)),
                  ("interrupts", lambda: cases_interrupts.all_of_it(rounds, arguments.slow))):
    begin = time.monotonic()
    if arguments.only in (None, name):
        run()
        print("  %s: %.1f s, %d comparisons so far" % (name, time.monotonic() - begin, lab.counts["compared"]), flush=True)
sys.exit(lab.finish(20000 if arguments.only is None else 1))
