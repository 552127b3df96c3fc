#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `report --json` holds in memory follows what is alive and what it prints once, not the
text it prints: a trace with fifteen times the stacks may add only a little for each.

usage: memory.py --vramscope PATH --mktrace PATH
"""
import argparse
import json
import os
import pathlib
import subprocess
import tempfile

FEW, MANY = 1_000, 15_000
LIVE = 500
BYTES_PER_STACK = 2_000  # a tree of JSON values took 11,600


def script(stacks):
    yield "device 0 80G X\nmodule /app/prog\n"
    for code in range(1, 65):
        yield f"code {code} {code} f{code} | /home/me/p{code % 7}.py\n"
    for stack in range(1, stacks + 1):
        frames = " ".join(f"py:{(stack >> 3 * k) % 64 + 1}:{(stack >> 3 * k) % 8 + 1 + k}" for k in range(8))
        yield f"stack {stack} /app/prog+{stack % 60000} {frames}\n"
        yield f"alloc dev=0 addr={0x100000000 + stack * 512} size=512 stack={stack}\n"
        if stack > LIVE:
            yield f"free dev=0 addr={0x100000000 + (stack - LIVE) * 512}\n"


def measure(options, folder, stacks):
    """The report's sites and the most memory that making it took, in bytes."""
    trace, page = folder / f"{stacks}.vscope", folder / f"{stacks}.json"
    made_from = folder / f"{stacks}.script"
    made_from.write_text("".join(script(stacks)))
    subprocess.run([options.mktrace, str(made_from), str(trace)], check=True)
    with page.open("wb") as out:
        child = os.posix_spawn(options.vramscope, [options.vramscope, "report", "--json", str(trace)],
                               os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, out.fileno(), 1)])
        _, status, usage = os.wait4(child, 0)
    assert status == 0, f"report --json: status {status}"
    report = json.loads(page.read_text())
    return len(report["sites"]), usage.ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vramscope", required=True)
    parser.add_argument("--mktrace", required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        few_sites, few_bytes = measure(options, folder, FEW)
        many_sites, many_bytes = measure(options, folder, MANY)
    added = (many_bytes - few_bytes) / (many_sites - few_sites)
    print(f"{few_sites} sites {few_bytes:,} bytes, {many_sites} sites {many_bytes:,} bytes: "
          f"{added:.0f} bytes a stack")
    assert few_sites >= FEW and many_sites >= MANY, "a stack was lost"
    assert added <= BYTES_PER_STACK, f"more than {BYTES_PER_STACK} bytes a stack"


main()
