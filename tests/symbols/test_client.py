# SPDX-License-Identifier: Apache-2.0
"""A symbolizer that crashes, hangs or lies costs the addresses it failed at, no
more; damaged files cost their own names only."""

import os
import random
import shutil
import stat
import subprocess
import sys
import time

from lab import check, equal, say
from symbol_lab import (FAILED, FOUND, HERE, NO_FILE, OTHER_BUILD, SKIPPED, UNREADABLE, Folder,
                        ask, build_id, functions, run)


def fake(folder, mode, name="fake"):
    """A symbolizer that goes wrong in one way."""
    with open(os.path.join(HERE, "fake_symbolizer.py"), encoding="utf-8") as source:
        text = source.read().replace("@MODE@", mode)
    path = folder.file(name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"#!{os.path.realpath(sys.executable)}\n{text}")
    os.chmod(path, stat.S_IRWXU)
    return path


def test_client_crash():
    with Folder() as folder:
        addresses = [0x1000, 0x10bb, 0x1001, 0x20bb, 0x1002]
        answers = ask("/module", addresses, identity="", program=fake(folder, "crash"))
        equal("one answer each", list(answers.by_address), addresses)
        equal("failures", answers.failures, 2)
        equal("where it crashed", answers.by_address[0x10bb], (FAILED, []))
        equal("before", answers.by_address[0x1001][1], [("function_1001", "file.c", 7)])
        # Two crashes in one module: its debug information is left alone.
        equal("behind", answers.by_address[0x1002][1], [("plain_1002", "file.c", 7)])
        many = [0x10bb + (i << 12) for i in range(40)]
        answers = ask("/module", many, identity="", program=fake(folder, "always-crash"))
        equal("then the module is left out", sorted(answers.statuses()), [FAILED, SKIPPED])
        equal("crashes", answers.failures, 3)


def test_client_hang():
    with Folder() as folder:
        began = time.monotonic()
        answers = ask("/module", [0x1000, 0x10bb, 0x1001], identity="",
                      program=fake(folder, "hang"), patience=700)
        check(time.monotonic() - began < 20, "it took too long")
        equal("where it hung", answers.by_address[0x10bb], (FAILED, []))
        equal("behind", answers.by_address[0x1001][0], FOUND)
        check(not still_running(folder.path), "the hanging symbolizer is still there")


def still_running(folder):
    done = subprocess.run(["pgrep", "-f", folder], capture_output=True, text=True)
    return [pid for pid in done.stdout.split() if int(pid) != os.getpid()]


def test_client_nonsense():
    with Folder() as folder:
        for mode in ("nonsense", "end"):
            answers = ask("/module", [0x1000, 0x10bb, 0x1001], identity="",
                          program=fake(folder, mode))
            equal(f"{mode}: where", answers.by_address[0x10bb], (FAILED, []))
            equal(f"{mode}: behind", answers.by_address[0x1001][0], FOUND)
        for program, wanted in ((fake(folder, "version"), "does not start"),
                                (folder.file("missing"), "not beside"), ("/bin/true", "does not start")):
            answers = ask("/module", [0x1000], identity="", program=program)
            equal(f"{program}: answers", answers.by_address, {})
            check(answers.error and wanted in answers.error, f"{program}: {answers.error}")


def test_other_build():
    """A file that is not the one the program ran is not used."""
    with Folder() as folder:
        first = folder.build("inlined.c", "first", "-O2", "-g")
        second = folder.build("inlined.c", "second", "-O1", "-g")
        start = next(s for s, _, name in functions(second) if name == "outer")
        equal("another build", ask(second, [start], identity=build_id(first)).statuses(),
              {OTHER_BUILD})
        equal("no build id known", ask(second, [start], identity="00").statuses(), {OTHER_BUILD})
        equal("itself", ask(second, [start]).statuses(), {FOUND})
        os.mkdir(folder.file("copies"))
        shutil.copy(second, folder.file("copies", "program"))
        equal("a copy by name", ask("/gone/program", [start], folder.file("copies"),
                                    identity=build_id(second)).statuses(), {FOUND})
        equal("no file", ask("/gone/program", [start], identity=build_id(second)).statuses(),
              {NO_FILE})
        os.chmod(folder.file("copies"), 0o700)
        equal("a folder", ask(folder.path, [start], identity="00").statuses(), {UNREADABLE})
        os.mkfifo(folder.file("pipe"))
        equal("a pipe", ask(folder.file("pipe"), [start], identity="00").statuses(), {UNREADABLE})
        equal("a device", ask("/dev/zero", [start], identity="00").statuses(), {UNREADABLE})


def damaged(data, generator):
    """A copy that is cut or has some bits turned, most of them in headers and tables."""
    copy = bytearray(data)
    if generator.random() < 0.3:
        return copy[:generator.randrange(len(copy))]
    for _ in range(generator.choice((1, 3, 20, 200))):
        where = generator.choice((len(copy), 64, 4096))
        place = generator.randrange(where)
        copy[place if where < len(copy) else generator.randrange(len(copy))] ^= \
            1 << generator.randrange(8)
    return copy


def test_damage():
    """200 damaged copies of each file: an answer to every address, in time."""
    generator = random.Random(4)
    with Folder() as folder:
        sources = [folder.build("inlined.c", "whole", "-O2", "-g"),
                   folder.build("templates.cc", "cxx", "-O2", "-gdwarf-4"),
                   folder.build("inlined.c", "dynamic", "-O2", "-shared", "-fPIC", "-s")]
        for source in sources:
            with open(source, "rb") as file:
                data = file.read()
            identity, crashes, slowest, harmed = build_id(source), 0, 0.0, 0
            wanted = [a for s, e, _ in functions(source, *(["-D"] if "dynamic" in source else []))
                      for a in range(s, e, 7)][:60]
            path, whole = folder.file("damaged"), ask(source, wanted)
            equal("the whole file", (whole.failures, whole.statuses()), (0, {FOUND}))
            for _ in range(200):
                with open(path, "wb") as file:
                    file.write(damaged(data, generator))
                began = time.monotonic()
                answers = ask(path, wanted, identity=identity, patience=5000)
                slowest = max(slowest, time.monotonic() - began)
                equal("answers", sorted(answers.by_address), sorted(set(wanted)))
                equal("error", answers.error, None)
                crashes += answers.failures
                harmed += answers.by_address != whole.by_address
            say(f"{os.path.basename(source)}: 200 damaged copies, {harmed} with other answers; the "
                f"symbolizer failed {crashes} times, the slowest took {slowest:.1f} s")
            check(slowest < 30, "too slow")
            check(harmed > 50, "the damage does not reach what is read")


PARTS, PART_FUNCTIONS, MOST_MIB = 60, 1200, 96


def large_program(folder):
    """A program with about 50 MB of debug information, in many units."""
    with open(folder.file("part.c"), "w", encoding="ascii") as file:
        file.write("#include <stdlib.h>\n")
        for i in range(PART_FUNCTIONS):
            members = " ".join(f"long m{i}_{j};" for j in range(40))
            file.write(f"struct s{i} {{ {members} }};\n"
                       f"long f{i}(struct s{i} *p)\n{{\n    if (p->m{i}_3 == {i})\n        abort();\n"
                       f"    return p->m{i}_7 * {i + 3};\n}}\n")
    run("gcc", "-O1", "-g", "-c", folder.file("part.c"), "-o", folder.file("part.o"))
    with open(folder.file("main.c"), "w", encoding="ascii") as file:
        file.write("#include <stdlib.h>\nint main(void)\n{\n    return 0;\n}\n")
        file.writelines(f"void p{n}_abort(void)\n{{\n    abort();\n}}\n" for n in range(PARTS))
    parts = []
    for n in range(PARTS):
        parts.append(folder.file(f"part{n}.o"))
        run("objcopy", f"--prefix-symbols=p{n}_", folder.file("part.o"), parts[-1])
    run("gcc", folder.file("main.c"), *parts, "-o", folder.file("large"))
    return folder.file("large")


def test_memory():
    """A program with much debug information is named in little memory."""
    with Folder() as folder:
        path = large_program(folder)
        own = sorted(row for row in functions(path) if row[2].startswith("p") and "_f" in row[2])
        equal("functions", len(own), PARTS * PART_FUNCTIONS)
        chosen = own[::len(own) // 1000]
        answers = ask(path, [start for start, _, _ in chosen], background=True)
        equal("failures", answers.failures, 0)
        for start, _, name in chosen:
            frame = answers.by_address[start][1][-1]
            equal(f"{start:x}", (frame[0], os.path.basename(frame[1])),
                  (name.split("_")[1], "part.c"))
        peak = answers.peak_kib // 1024
        check(peak < MOST_MIB, f"{peak} MiB")
        say(f"{os.path.getsize(path) >> 20} MiB of program, {len(chosen)} names, {peak} MiB")
