# SPDX-License-Identifier: Apache-2.0
"""Names against addr2line and nm, which read the same files by other code."""

import os

from lab import Skip, check, equal, say
from symbol_lab import (FOUND, NOTHING_KNOWN, Folder, addr2line, ask, build_id, code_addresses,
                        functions, llvm_symbolizer, need, run, sections)


def shown(frames):
    """Frames as both sides can say them: the last part of the path, no line for line 0."""
    return [(function, os.path.basename(file), line) for function, file, line in frames]


def oracle(path, addresses):
    """[(name, file, line, other name), …]: names by both tools (each is wrong for some inlined
    functions without a linkage name, not the same ones), places by llvm-symbolizer (addr2line 2.40
    names wrong files for some functions of DWARF 5); addr2line alone where the two see other calls
    inlined."""
    names, places = addr2line(path, addresses), llvm_symbolizer(path, addresses)
    table = {}
    for address, frames in names.items():
        others = places.get(address, [])
        if len(others) != len(frames):
            others = frames
        table[address] = [(mine[0], os.path.basename(theirs[1]), theirs[2], theirs[0])
                          for mine, theirs in zip(frames, others)]
    return table


def same_text(ours, whole):
    """Ours may be cut."""
    return ours == whole or (ours.endswith("\u2026") and whole.startswith(ours[:-1]))


def same_frame(mine, theirs, address, allowed_names):
    # Without a line the file is only the name of the object's source.
    place = mine[1:] == theirs[1:3] or (mine[1:] == ("", 0) and theirs[2] == 0)
    return place and (same_text(mine[0], theirs[0]) or mine[0] == theirs[3] or
                      bool(allowed_names and allowed_names(address, mine[0], theirs[0])))


def compare(path, addresses, allowed_names=None):
    """Compares every frame. `allowed_names`: says whether two names are one function's."""
    ours = ask(path, addresses)
    equal(f"{path}: failures", ours.failures, 0)
    differences = []
    for address, wanted in oracle(path, addresses).items():
        status, got = ours.by_address[address]
        got = shown(got) or [("", "", 0)]
        same = len(got) == len(wanted) and all(
            same_frame(mine, theirs, address, allowed_names) for mine, theirs in zip(got, wanted))
        if not same:
            differences.append((address, status, got, wanted))
    text = "\n".join(f"{a:x} ({s}): ours {g}, others {w}" for a, s, g, w in differences[:5])
    check(not differences, f"{path}: {len(differences)} of {len(addresses)} differ:\n{text}")
    say(f"{os.path.basename(path)}: {len(addresses)} addresses as other tools have them")


C_BUILDS = {
    "o0": ["-O0", "-g"],
    "o2": ["-O2", "-g"],
    "o3-nopie": ["-O3", "-g", "-no-pie", "-fno-pie"],
    "static": ["-O2", "-g", "-static"],
    "lto": ["-O2", "-g", "-flto"],
    "dwarf4": ["-O2", "-gdwarf-4"],
    "packed": ["-O2", "-g", "-gz"],
    "no-aranges": ["-O2", "-g", "-fno-asynchronous-unwind-tables"],
    "shared": ["-O2", "-g", "-shared", "-fPIC"],
    "no-debug": ["-O2"],
}


def test_oracle_c():
    with Folder() as folder:
        for name, options in C_BUILDS.items():
            path = folder.build("inlined.c", name, *options)
            own = [row for row in functions(path) if row[2] in (
                "outer", "dies", "behind", "rarely", "exported_entry", "main", "rarely.cold",
                "exported_entry.constprop.0")]
            check(len(own) >= 4, f"{name}: the program's functions are not there: {own}")
            compare(path, [a for start, end, _ in own for a in range(start, end)])


def test_oracle_cxx():
    with Folder() as folder:
        for name, options in {"cxx-o0": ["-O0", "-g"], "cxx-o2": ["-O2", "-g"],
                              "cxx-o3-lto": ["-O3", "-g", "-flto"],
                              "cxx-no-debug": ["-O2"]}.items():
            path = folder.build("templates.cc", name, *options)
            sized = [a for start, end, _ in functions(path) for a in range(start, end)]
            compare(path, sorted(set(sized)))


def test_oracle_clang():
    """clang leaves out .debug_aranges, and puts definitions inside their namespaces."""
    compiler = need("clang-14")
    with Folder() as folder:
        for name, options in {"clang-o2": ["-O2", "-g"], "clang-dwarf4": ["-O1", "-gdwarf-4"]}.items():
            path = folder.build("inlined.c", name, *options, compiler=compiler)
            sized = [a for start, end, _ in functions(path) for a in range(start, end)]
            compare(path, sorted(set(sized)))
        path = folder.build("inlined.c", "clang-split", "-O2", "-g", "-gsplit-dwarf", compiler=compiler)
        whole = folder.build("inlined.c", "clang-whole", "-O2", "-g", compiler=compiler)
        start, end = next((s, e) for s, e, name in functions(path) if name == "outer")
        offset = next(s for s, _, name in functions(whole) if name == "outer") - start
        split, one = ask(path, range(start, end)), ask(whole, range(start + offset, end + offset))
        for address in range(start, end):
            equal(f"{address:x} with split debug information", split.by_address[address],
                  one.by_address[address + offset])
        say(f"split debug information: {end - start} addresses")


def test_oracle_libc():
    """A large C library with debug information in a file of its own, where it is installed."""
    path = os.path.realpath("/lib/x86_64-linux-gnu/libc.so.6")
    if not os.path.exists(path):
        raise Skip("no libc at the usual place")
    debug = "/usr/lib/debug/.build-id/{0[0]}{0[1]}/{1}.debug".format(build_id(path),
                                                                     build_id(path)[2:])
    if not os.path.exists(debug):
        raise Skip("libc6-dbg is not installed")
    every = functions(debug) + functions(path, "-D")

    def renamed(address, mine, theirs):
        """Internal names (__GI_malloc) and the exported ones of the same function."""
        inside = any(s <= address < e for s, e, name in every)
        return theirs == "__GI_" + mine or (mine == "" and not inside) or \
            any(s <= address < e and name == mine for s, e, name in every)

    compare(path, code_addresses(path, 2000), renamed)


def test_stripped():
    """Only .dynsym is left: the exported function, and nothing wrong for the others."""
    with Folder() as folder:
        path = folder.build("inlined.c", "stripped.so", "-O2", "-shared", "-fPIC")
        every = functions(path)
        run("strip", path)
        exported = {name: (start, end) for start, end, name in functions(path, "-D")}
        check("exported_entry" in exported, f"not exported: {exported}")
        start, end = exported["exported_entry"]
        answers = ask(path, range(start, end))
        for address, (status, frames) in answers.by_address.items():
            equal(f"{address:x}", (status, frames), (FOUND, [("exported_entry", "", 0)]))
        hidden = [row for row in every if row[2] == "rarely"]
        check(hidden, "no hidden function in the program")
        for start, end, _ in hidden:
            for address, (status, frames) in ask(path, range(start, end)).by_address.items():
                equal(f"{address:x} of a stripped function", (status, frames), (NOTHING_KNOWN, []))


def separate_debug(folder, path, debug):
    run("objcopy", "--only-keep-debug", path, debug)
    run("objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", path)


def test_separate():
    """Debug files by build id, by link beside the object, by link in .debug, in given folders."""
    with Folder() as folder:
        for where in ("beside", ".debug", "by-id", "by-name"):
            home = folder.file(where)
            os.makedirs(os.path.join(home, ".debug"))
            path = folder.build("inlined.c", os.path.join(where, "program"), "-O2", "-g")
            reference = folder.file(where + "-whole")
            run("cp", path, reference)
            identity = folder.file("debug-" + where)
            debug = os.path.join(home, "program.debug")
            separate_debug(folder, path, debug)
            extra = []
            if where == ".debug":
                os.rename(debug, os.path.join(home, ".debug", "program.debug"))
            elif where == "by-id":
                build = run("readelf", "-n", path).split("Build ID: ")[1].split()[0]
                place = os.path.join(identity, ".build-id", build[:2])
                os.makedirs(place)
                os.rename(debug, os.path.join(place, build[2:] + ".debug"))
                extra = [identity]
            elif where == "by-name":
                os.makedirs(identity)
                os.rename(debug, os.path.join(identity, "program.debug"))
                extra = [identity]
            sized = sorted({a for s, e, _ in functions(reference) for a in range(s, e)})
            ours, wanted = ask(path, sized, *extra), addr2line(reference, sized)
            for address in sized:
                equal(f"{where}: {address:x}", shown(ours.by_address[address][1]),
                      shown([f for f in wanted[address]]))
            say(f"debug file {where}: {len(sized)} addresses")
            # The object itself gone: the debug file alone still names.
            if where in ("by-id", "by-name"):
                os.unlink(path)
                alone = ask(path, sized[:50], *extra, identity=build_id(reference))
                equal(f"{where}: without the object", alone.statuses(), {FOUND})


def test_plt():
    """Jump stubs belong to no function; the one before them is not to blame."""
    with Folder() as folder:
        path = folder.build("inlined.c", "program", "-O2", "-g")
        for name in (".plt", ".plt.sec", ".plt.got"):
            if name in sections(path):
                answers = ask(path, code_addresses(path, section=name))
                equal(name, answers.statuses(), {NOTHING_KNOWN})
                say(f"{name}: {len(answers.by_address)} addresses without a name")


def test_last_call():
    """A return address behind a call that never returns is looked up inside the call."""
    with Folder() as folder:
        path = folder.build("inlined.c", "program", "-O2", "-g", "-falign-functions=1")
        start, end = next((s, e) for s, e, name in functions(path) if name == "dies")
        lines = run("objdump", "-d", f"--start-address={start}", f"--stop-address={end}", path)
        last = [line for line in lines.splitlines() if line.startswith(" ")][-1]
        check("call" in last, f"the last instruction is no call: {last}")
        behind = ask(path, [end]).by_address[end][1]
        check(behind and behind[-1][0] != "dies", f"behind it lies {behind}")
        inside = ask(path, [end - 1]).by_address[end - 1][1]
        equal("the function of the last call", inside[-1][0], "dies")


def test_torch():
    """PyTorch's largest libraries: 2,000 functions each against nm."""
    home = os.path.expanduser("~/.cache/vramscope/torch/lib")
    found = []
    for folder, _, names in os.walk(home):
        found += [os.path.join(folder, n) for n in names
                  if n in ("libtorch_cpu.so", "libtorch_cuda.so", "libtorch_python.so")]
    if not found:
        raise Skip("no PyTorch here: scripts/torch-env")
    for path in found:
        by_range = {}
        for start, end, name in functions(path, "-D"):
            by_range.setdefault((start, end), set()).add(name)
        ranges = sorted(by_range)
        chosen = ranges[::max(1, len(ranges) // 2000)]
        wanted = {(s + e) // 2: by_range[s, e] for s, e in chosen if e > s}
        answers = ask(path, sorted(wanted))
        wrong = [(hex(a), answers.by_address[a], names) for a, names in wanted.items()
                 if not same_name(answers.by_address[a], names)]
        # A function inside another one's range, or more than one name of one place.
        check(len(wrong) * 1000 <= len(wanted), f"{path}: {len(wrong)}: {wrong[:3]}")
        say(f"{os.path.basename(path)}: {len(wanted)} functions, {len(wrong)} with another name")


def same_name(answer, names):
    status, frames = answer
    if status != FOUND or not frames:
        return False
    return any(same_text(frames[-1][0], one) for one in names)
