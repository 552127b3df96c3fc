# SPDX-License-Identifier: Apache-2.0
"""What the tests of names share: compiling small programs, asking the symbolizer
as the product does, and asking addr2line and nm the same. Standard library and
binutils only."""

import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "lifecycle"))

from lab import BUILD, Skip, check  # noqa: E402

ASK = os.path.join(BUILD, "bin", "symbols-ask")
SYMBOLIZER = os.path.join(BUILD, "bin", "vramscope-symbolizer")
PROGRAMS = os.path.join(HERE, "programs")

FOUND, NOTHING_KNOWN, NO_FILE, OTHER_BUILD, UNREADABLE, FAILED, SKIPPED = range(7)


def need(tool):
    found = shutil.which(tool)
    if found is None:
        raise Skip(f"{tool} is not installed")
    return found


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", **options)
    check(done.returncode == 0, f"{' '.join(command)}: {done.stderr}")
    return done.stdout


class Folder:
    """A temporary folder in which programs are built."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="vs-symbols-")
        return self

    def __exit__(self, *error):
        shutil.rmtree(self.path, ignore_errors=True)

    def file(self, *names):
        return os.path.join(self.path, *names)

    def build(self, source, name, *options, compiler=None, libraries=()):
        """Compiles and links a program of programs/ and returns its path."""
        compiler = need(compiler or ("g++" if source.endswith(".cc") else "gcc"))
        target = self.file(name)
        run(compiler, *options, "-c", os.path.join(PROGRAMS, source), "-o", target + ".o",
            cwd=self.path)
        run(compiler, *options, target + ".o", "-o", target, *libraries, cwd=self.path)
        return target


def build_id(path):
    found = re.search(r"Build ID: ([0-9a-f]+)", run("readelf", "-n", path))
    return found.group(1) if found else ""


class Answers:
    """What symbols-ask printed: address → (status, [(function, file, line), …])."""

    def __init__(self, text):
        self.by_address, self.failures, self.error, self.peak_kib = {}, 0, None, 0
        frames = []
        for line in text.splitlines():
            if line.startswith("\t"):
                _, function, file, number = line.split("\t")
                frames.append((function, file, int(number)))
            elif line.startswith("failures "):
                self.failures = int(line.split()[1])
            elif line.startswith("peak_kib "):
                self.peak_kib = int(line.split()[1])
            elif line.startswith("error "):
                self.error = line[6:]
            else:
                address, status = line.split()
                frames = []
                self.by_address[int(address, 16)] = (int(status), frames)

    def statuses(self):
        return {status for status, _ in self.by_address.values()}


def ask(path, addresses, *folders, identity=None, program=SYMBOLIZER, patience=None,
        background=False, timeout=300):
    """Asks about addresses of a file; `identity`: the build id it is known by."""
    command = [ASK, program, path]
    identity = build_id(path) if identity is None else identity
    if identity:
        command += ["--build-id", identity]
    if patience:
        command += ["--patience", str(patience)]
    if background:
        command += ["--background", "1"]
    for folder in folders:
        command += ["--folder", folder]
    done = subprocess.run(command, input="\n".join(f"{a:x}" for a in addresses), text=True,
                          capture_output=True, timeout=timeout, errors="replace")
    check(done.returncode in (0, 1), f"{' '.join(command)}: {done.returncode} {done.stderr}")
    return Answers(done.stdout)


def read_frames(text):
    """Output in the style of addr2line -a -f -i: address → [(function, file, line), …]."""
    out, table, at = text.splitlines(), {}, 0
    while at < len(out):
        if out[at].startswith("0x"):
            frames = table[int(out[at], 16)] = []
            at += 1
            continue
        function, place = out[at], re.sub(r" \(discriminator.*", "", out[at + 1])
        file, _, line = place.rpartition(":")
        frames.append(("" if function == "??" else function, "" if file == "??" else file,
                       int(line) if line.isdigit() else 0))
        at += 2
    return table


def addr2line(path, addresses):
    """Innermost first; what is not known is "" or 0."""
    return read_frames(run("addr2line", "-a", "-f", "-i", "-C", "-e", path,
                           input="\n".join(f"{a:x}" for a in addresses)))


def llvm_symbolizer(path, addresses):
    """The same by other code. Its names are spelt in another way than addr2line's."""
    text = run(need("llvm-symbolizer-14"), "--output-style=GNU", "-a", "-f", "-i", "--obj=" + path,
               input="\n".join(f"0x{a:x}" for a in addresses))
    return read_frames("\n".join(line for line in text.splitlines() if line))


def sections(path):
    """name → (address, bytes)"""
    rows = re.findall(r"^\s*\[\s*\d+\]\s+(\S+)\s+\S+\s+([0-9a-f]+)\s+[0-9a-f]+\s+([0-9a-f]+)",
                      run("readelf", "-SW", path), re.M)
    return {name: (int(address, 16), int(size, 16)) for name, address, size in rows}


def code_addresses(path, count=None, seed=1, section=".text"):
    """All addresses of a section, or a random sample of them."""
    start, size = sections(path)[section]
    every = range(start, start + size)
    if count is None or count >= size:
        return list(every)
    return sorted(random.Random(seed).sample(every, count))


def functions(path, *nm_options):
    """Sized functions by nm: [(address, end, name)], demangled, without versions."""
    rows = []
    for line in run("nm", "-C", "--no-recurse-limit", "-S", "--defined-only", *nm_options,
                    path).splitlines():
        found = re.match(r"([0-9a-f]+) ([0-9a-f]+) ([tTwWi]) (.+)", line)
        if found:
            start = int(found[1], 16)
            rows.append((start, start + int(found[2], 16), re.sub(r"@.*", "", found[4])))
    return rows
