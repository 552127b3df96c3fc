#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""On a terminal the report has colour and bars, keeps to its width, and says the same as in a file;
NO_COLOR and a dumb terminal get it plain.

usage: terminal.py --vramscope PATH --mktrace PATH
"""
import argparse
import os
import pathlib
import pty
import re
import subprocess
import sys
import tempfile
import threading

TRACES = pathlib.Path(__file__).resolve().parent / "traces"
COLUMNS = 100
END = b"\0that was all"
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
BAR = re.compile("[ █]*█$", re.MULTILINE)


def on_terminal(words, **settings):
    """What a terminal is shown. A pseudo-terminal whose last writer is gone may say so before it has
    handed over what was written, so this end stays open and ends the text itself."""
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    environment.update({"TERM": "xterm", **settings})
    master, slave = pty.openpty()
    process = subprocess.Popen(words, stdin=slave, stdout=slave, stderr=slave, env=environment)
    ending = threading.Thread(target=lambda: (process.wait(), os.write(slave, END)))
    ending.start()
    text = b""
    while not text.endswith(END):
        text += os.read(master, 1 << 16)
    ending.join()
    os.close(slave)
    os.close(master)
    return text[:-len(END)].decode().replace("\r\n", "\n")


def main():
    parser = argparse.ArgumentParser()
    for name in ("--vramscope", "--mktrace"):
        parser.add_argument(name, required=True, type=os.path.abspath)
    arguments = parser.parse_args()
    faults, bars, colours = [], 0, 0
    with tempfile.TemporaryDirectory(prefix="vramscope-terminal-") as folder:
        for script in sorted(TRACES.glob("*.txt")):
            trace = os.path.join(folder, script.stem + ".vscope")
            subprocess.run([arguments.mktrace, script, trace], check=True)
            words = [arguments.vramscope, "report", trace]
            done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            rich = on_terminal(words)
            shown = ESCAPE.sub("", rich)
            bars += shown.count("█") > 0
            colours += rich != shown
            faults += [f"{script.stem}: {len(line)} columns: {line}" for line in shown.splitlines()
                       if "█" in line and len(line) > COLUMNS]
            if BAR.sub("", shown) != done.stdout:
                faults.append(f"{script.stem}: the terminal is told something else than the file")
            for plain in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
                if on_terminal(words, **plain) != done.stdout:
                    faults.append(f"{script.stem}: not plain with {plain}")
    if bars == 0 or colours == 0:
        faults.append("no report had a bar, or none had colour")
    print("\n".join([*faults, f"{len(faults)} faults; {bars} reports with bars, {colours} with colour"]))
    return 1 if faults else 0


sys.exit(main())
