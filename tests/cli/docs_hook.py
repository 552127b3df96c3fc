#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does what docs/hook-one-more-call.md says, in a copy of this tree: the line into shim/hooks.def, the list of
hooks written anew, the shim built, the call made to fail; the event must be the one the page shows.
docs_hook.py --vramscope PROGRAM"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PAGE = ROOT / "docs/hook-one-more-call.md"
CALLER = """import ctypes
driver = ctypes.CDLL("libcuda.so.1")
context, pointer = ctypes.c_void_p(), ctypes.c_uint64()
assert driver.cuInit(0) == 0 and driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert driver.cuCtxSetCurrent(context) == 0
assert driver.cuMemAllocManaged(ctypes.byref(pointer), ctypes.c_size_t(1 << 20), 1) == 0
assert driver.cuMemAdvise(pointer, ctypes.c_size_t(1 << 20), 1, 0) == 1
"""


def run(*words, cwd, status=0, **extra):
    done = subprocess.run(words, cwd=cwd, env={**os.environ, **extra}, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=600, check=False)
    if done.returncode != status:
        raise SystemExit(f"{words} exited with {done.returncode}:\n{done.stdout}")
    return done.stdout


def add_hook(tree, line):
    """Out of what is left alone, to the end of the section of managed memory's allocation."""
    table = tree / "shim/hooks.def"
    lines = table.read_text(encoding="utf-8").splitlines()
    name = line.split(" |")[0]
    left_alone = [at for at, text in enumerate(lines) if text.startswith(f"{name} |")]
    if len(left_alone) != 1:
        raise SystemExit(f"{name} is {len(left_alone)} times in hooks.def: the page needs another example")
    del lines[left_alone[0]]
    beside, = (at for at, text in enumerate(lines) if text.split(" ")[0] == "cuMemAllocManaged")
    lines.insert(beside + 1, line)
    table.write_text("\n".join(lines) + "\n", encoding="utf-8")


def without_what_varies(line):
    """An event's line without its number, time, thread and address."""
    return [word for word in line.split()[3:] if not word.startswith("0x")]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vramscope", required=True, type=pathlib.Path)
    program = parser.parse_args().vramscope.resolve()
    blocks = [block.strip() for block in re.findall(r"^ +```\n(.*?)^ +```", PAGE.read_text(encoding="utf-8"), re.M | re.S)]
    line, commands, event = blocks
    with tempfile.TemporaryDirectory(prefix="vramscope-hook-") as name:
        folder = pathlib.Path(name)
        tree, build = folder / "tree", "build/release"
        files = run("git", "ls-files", "-co", "--exclude-standard", cwd=ROOT).splitlines()
        for file in (file for file in files if (ROOT / file).is_file()):
            (tree / file).parent.mkdir(parents=True, exist_ok=True)
            (tree / file).write_bytes((ROOT / file).read_bytes())
            (tree / file).chmod((ROOT / file).stat().st_mode)
        run("cmake", "-S", ".", "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", cwd=tree)
        check = ("scripts/gen-hooks", "shim/hooks.def", "--check", "docs/hooks.md")
        run(*check, cwd=tree)
        add_hook(tree, line)
        run(*check, cwd=tree, status=1)
        for command in commands.splitlines():
            run(*command.split(), cwd=tree)
        run(*check, cwd=tree)
        (folder / "advise.py").write_text(CALLER, encoding="utf-8")
        shim = tree / build / "lib/libvramscope.so"
        run(ROOT / "scripts/simgpu", "--fail", "cuMemAdvise:1:invalid_value", "--", "sh", "-c",
            f'LD_PRELOAD={shim}:$LD_PRELOAD exec {sys.executable} advise.py', cwd=folder,
            VRAMSCOPE_BUILD=str(program.parents[1]), VRAMSCOPE_OUTPUT="advise.vscope",
            VRAMSCOPE_COLLECTOR=str(program.parent / "vramscope-collector"))
        dumped = run(program, "dump", "advise.vscope", cwd=folder)
    if without_what_varies(event) not in map(without_what_varies, dumped.splitlines()):
        print(f"no event as shown:\n{event}\nbut:\n{dumped}")
        return 1
    print("the event is the one shown")
    return 0


if __name__ == "__main__":
    sys.exit(main())
