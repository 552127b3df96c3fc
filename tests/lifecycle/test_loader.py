# SPDX-License-Identifier: Apache-2.0
"""The loader: constructors that wait for locks, look-ups in every way, C++ exceptions."""

import re
import subprocess

from lab import SHIM, SLOW, check, equal, need, program, say

ROUNDS = 10000 if SLOW else 200


def hooked_names():
    """The names the shim exports: CUDA's entry points, from the file itself."""
    need("nm")
    text = subprocess.run(["nm", "-D", "--defined-only", SHIM], capture_output=True, text=True,
                          check=True).stdout
    names = re.findall(r"\b[TWi] (cu[A-Za-z0-9_]+)$", text, re.MULTILINE)
    return sorted(name for name in names if re.match(r"cu(da)?[A-Z]", name))


def ctor_command(rounds):
    return [program("ctor-deadlock"), str(rounds), program("libctor-plugin.so"), *hooked_names()]


def test_loader_constructor(lab):
    """The holder of the lock makes the first-ever call of every hook."""
    names = hooked_names()
    check(len(names) > 100, f"the shim exports only {len(names)} CUDA names")
    without = lab.plain(ctor_command(3), timeout=120)
    equal("untraced", (without.status, without.out.splitlines()[-1:]), (0, ["3 rounds"]))
    done = lab.preloaded(ctor_command(ROUNDS), timeout=3600 if SLOW else 300)
    equal("rounds", (done.status, done.out.splitlines()[-1:]), (0, [f"{ROUNDS} rounds"]))
    say(done.out.strip())


def same_but_for_hooks(text):
    """Where a hooked name was found differs by design; nothing else may."""
    return [re.sub(r"(default|next) dlopen: \S+,", r"\1 dlopen: found,", line)
            for line in text.splitlines()]


def test_loader_dlsym(lab):
    command = [program("dlsym-probes"), program("libforeign.so")]
    plain = lab.plain(command)
    traced = lab.preloaded(command)
    equal("untraced status", plain.status, 0)
    equal("status", traced.status, 0)
    equal("look-ups", same_but_for_hooks(traced.out), same_but_for_hooks(plain.out))
    traces = lab.wait_for_traces(1)
    equal("traces", len(traces), 1)


def test_loader_twice(lab):
    """Our own library opened a second time, by another path: no second recorder."""
    copy = lab.path("libvramscope-copy.so")
    subprocess.run(["cp", SHIM, copy], check=True)
    for path in (SHIM, copy):
        lab.empty_traces()
        done = lab.preloaded([program("dlsym-probes"), program("libforeign.so"), path])
        equal(f"status with {path}", done.status, 0)
        equal("traces", len(lab.wait_for_traces(1)), 1)


def test_loader_exceptions(lab):
    """C++ exceptions through 20 frames, paired: with the shim loaded, and without."""
    command = [program("throw-time"), program("libthrow.so"), "20"]
    plain, loaded = [], []
    for _ in range(15 if SLOW else 5):  # in turn, so that a busy machine is busy for both
        for times, env in ((plain, None), (loaded, {"LD_PRELOAD": SHIM})):
            done = lab.run(command, env)
            equal("status", done.status, 0)
            times.append(float(done.out))
    ratio = min(loaded) / min(plain)
    say(f"an exception costs {ratio:.3f} times as much with the shim loaded")
    check(ratio <= (1.1 if SLOW else 1.5), f"exceptions cost {ratio:.2f} times as much")


def test_loader_object(lab):
    """What the shared object needs and exports."""
    need("readelf")
    dynamic = subprocess.run(["readelf", "-dVW", SHIM], capture_output=True, text=True,
                             check=True).stdout
    needed = re.findall(r"NEEDED.*\[(.*)\]", dynamic)
    check(set(needed) <= {"libc.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2"},
          f"needs {needed}")
    versions = {tuple(int(part) for part in v.split("."))
                for v in re.findall(r"GLIBC_([0-9.]+)", dynamic)}
    check(max(versions) <= (2, 31), f"needs glibc {max(versions)}")
    check("GLIBC_PRIVATE" not in dynamic, "uses GLIBC_PRIVATE")
    symbols = subprocess.run(["nm", "-D", SHIM], capture_output=True, text=True, check=True).stdout
    exported = re.findall(r" [TWBDViu] (\S+)$", symbols, re.MULTILINE)
    others = [name for name in exported
              if not re.match(r"(cu[A-Z]|cuda[A-Z]|nccl[A-Z]|vramscope_)", name)
              and name.split("@")[0] not in ALLOWED_EXPORTS | NVTX_EXPORTS
              and not re.match(r"_ZN3c10\d*report|_ZN(3c10|2at)4cuda7MemPool|_ZN7oneflow2vm12BinAllocator", name)]
    equal("exports that are neither hooked names nor vramscope_*", others, [])
    undefined = re.findall(r" U (cu\w+)", symbols)
    equal("undefined CUDA names", undefined, [])


# NVTX asks getenv for a tool's library, and that for its one function.
NVTX_EXPORTS = {"getenv", "InitializeInjectionNvtx2"}

# libc's own that the shim stands before: the loader's, the ends of a program, its signal handlers.
ALLOWED_EXPORTS = {"dlsym", "dlvsym", "dlopen", "dlmopen", "dlclose", "_exit", "_Exit", "quick_exit",
                   "fork", "vfork", "execve", "execv", "execvp", "execvpe", "execl", "execlp",
                   "execle", "fexecve", "execveat", "posix_spawn", "posix_spawnp", "abort",
                   "sigaction", "signal", "ssignal", "bsd_signal", "sysv_signal", "__sysv_signal",
                   "sigset"}
