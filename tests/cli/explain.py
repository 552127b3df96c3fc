#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What stands around a pasted message must not change its verdict: every paste that is
understood is read again coloured, prefixed, quoted, with Windows newlines, wrapped, as a
web page has it, through a pipe, and inside a log too large to keep in memory.

explain.py --vramscope PATH
"""
import argparse
import html
import json
import pathlib
import resource
import subprocess
import sys

PASTES = pathlib.Path(__file__).resolve().parent / "pastes"
# Sentences; the others are tables, whose lines belong together as they are.
WRAPPED = ("a16", "a26", "a30", "cached", "fragmented", "full", "container", "other_process",
           "outside", "private_pools", "limit", "async", "cupy", "rmm", "xla_space", "cpu",
           "torch_", "serve_", "lib_", "fw_")
NOISE = b"2026-12-02 10:11:12,345 INFO step 120 of 9000, loss 0.31, 12.5 samples/s\n"


def each_line(text, change):
    return b"\n".join(change(line) for line in text.rstrip(b"\n").split(b"\n")) + b"\n"


def wrap(text, columns):
    lines = text.rstrip(b"\n").split(b"\n")
    return b"\n".join(line[i:i + columns] for line in lines
                      for i in range(0, max(len(line), 1), columns)) + b"\n"


def web_page(text):
    """Entities for what HTML escapes, no-break spaces, a tag for the line's end."""
    return html.escape(text.decode("latin-1")).replace("  ", " &nbsp;").encode("latin-1").replace(
        b"\n", b"<br>\n")


VLLM = b"(EngineCore_DP0 pid=17374) ERROR 09-28 15:47:24 [core.py:718] "
DRESSES = {
    "colours": lambda t: each_line(t, lambda l: b"\x1b[1;31m" + l + b"\x1b[0m\x1b]0;title\x07"),
    "rank": lambda t: each_line(t, lambda l: b"[rank3]: " + l),
    "time": lambda t: each_line(t, lambda l: b"2026-12-02 10:11:12,345 ERROR " + l),
    "vllm": lambda t: each_line(t, lambda l: VLLM + l),
    "glog": lambda t: each_line(t, lambda l: b"E1201 10:00:00.123456  4711 worker.cc:417] " + l),
    "mpirun": lambda t: each_line(t, lambda l: b"[1,3]<stderr>:" + l),
    "web page": web_page,
    "no-break spaces": lambda t: t.replace(b" ", b"\xc2\xa0"),
    "quoted": lambda t: each_line(t, lambda l: b"> " + l),
    "container": lambda t: each_line(t, lambda l: b"trainer-1  | " + l),
    "windows": lambda t: t.replace(b"\n", b"\r\n"),
    "no newline at the end": lambda t: t.rstrip(b"\n"),
    "noise around": lambda t: NOISE * 500 + t + NOISE * 500,
}
WRAPS = {f"wrapped at {columns}": (lambda t, c=columns: wrap(t, c)) for columns in (37, 80, 120)}
WRAPS["wrapped by a logger"] = lambda t: each_line(wrap(t, 60), lambda l: VLLM + l)


def run(vramscope, text):
    done = subprocess.run([vramscope, "explain", "--json"], input=text, capture_output=True,
                          timeout=120, check=False)
    if done.returncode == 1:
        return None
    if done.returncode != 0:
        raise SystemExit(f"explain ended with {done.returncode}: {done.stderr!r}")
    told = json.loads(done.stdout)
    return told["class"], told["why"], told["numbers"], told["failures"]


def limited(vramscope):
    """A bound on the command's memory, where it starts at all with it (not under sanitizers)."""
    limit = 24 << 20

    def bound():
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))

    starts = subprocess.run([vramscope, "--version"], preexec_fn=bound, capture_output=True,
                            check=False).returncode == 0
    return bound if starts else None


def check_huge(vramscope):
    """The message is in the middle of 64 MiB, read with less than half of that for data."""
    text = (PASTES / "a26b.txt").read_bytes()
    process = subprocess.Popen([vramscope, "explain", "--json"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, preexec_fn=limited(vramscope))
    block = NOISE * 10000
    parts = (64 << 20) // len(block)
    for part in range(parts):
        process.stdin.write(block if part != parts // 2 else block + text)
    told = json.loads(process.communicate(timeout=300)[0])
    return told["class"] == "fragmented" and told["failures"] == 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--vramscope", required=True)
    vramscope = parser.parse_args().vramscope
    checked = faults = 0
    for paste in sorted(PASTES.glob("*.txt")):
        text = paste.read_bytes()
        plain = run(vramscope, text)
        if plain is None or paste.stem.startswith(("log_", "dress_")):
            continue
        dresses = dict(DRESSES)
        if paste.stem.startswith(WRAPPED):
            dresses.update(WRAPS)
        for name, dress in dresses.items():
            checked += 1
            dressed = run(vramscope, dress(text))
            if dressed != plain:
                faults += 1
                print(f"{paste.stem}, {name}:\n  plain   {plain}\n  dressed {dressed}")
    if not check_huge(vramscope):
        faults += 1
        print("a message in the middle of 64 MiB of log is not found")
    print(f"{checked} dressed pastes, {faults} faults")
    return 1 if faults or checked == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
