# SPDX-License-Identifier: Apache-2.0
"""vramscope doctor: it names what is wrong when something is, and nothing when not."""

import os
import subprocess
import sys
import time

from lab import SHIM, TOOL, Skip, check, equal, need, processes, program, tool


def doctor(lab, *arguments, env=None, simulated=True):
    command = [TOOL, "doctor", *arguments]
    return lab.run(lab.on_simgpu(command) if simulated else command, env)


def says(done, text):
    check(text in done.out, f"doctor does not say {text!r}:\n{done.out}{done.err}")


def test_doctor_host(lab):
    done = doctor(lab)
    equal(f"status\n{done.out}{done.err}", done.status, 0)
    for text in ("needs nothing but libc", "preloading works", "CUDA driver: ", "memfd works",
                 "traces can be written"):
        says(done, text)
    bad = doctor(lab, env={"VRAMSCOPE_OUTPUT": "/nonexistent/folder/"})
    equal("status without an output folder", bad.status, 1)
    says(bad, "FAULT no trace can be written to /nonexistent/folder/")
    equal("usage", tool("doctor", "--pid", "x").status, 2)
    equal("usage", tool("doctor", "--nonsense").status, 2)
    equal("help", tool("doctor", "--help").status, 0)


def test_doctor_command(lab):
    done = doctor(lab, "--", program("ends"), "exit", env={"TMPDIR": lab.folder})
    equal(f"status\n{done.out}{done.err}", done.status, 0)
    says(done, "ended with status 7")
    says(done, "hooks took effect")
    line = [line for line in done.out.splitlines() if "cuMemAlloc_v2" in line][0]
    check("5 called" in line and "by dlsym or cuGetProcAddress" in line, line)
    equal("what is left behind", [name for name in os.listdir(lab.folder)
                                  if name.startswith("vramscope-")], [])
    if os.path.exists(program("calls")):
        done = doctor(lab, "--", program("calls"), lab.path("log"), "runtime")
        line = [line for line in done.out.splitlines() if "cudaMallocManaged" in line][0]
        check("by symbol" in line, line)
        done = doctor(lab, "--", program("calls-static"), lab.path("log"), "runtime")
        says(done, "carries a runtime of its own")


# As the simulated driver maps its device's memory.
OPENS_A_DEVICE = """
import mmap, os, time
device = os.memfd_create("simgpu-arena")
os.ftruncate(device, mmap.PAGESIZE)
mapped = mmap.mmap(device, mmap.PAGESIZE)
time.sleep(1)
"""


def static_program(lab):
    path = lab.path("static")
    source = lab.path("static.c")
    with open(source, "w", encoding="utf-8") as file:
        file.write("#include <unistd.h>\nint main(void) { usleep(100000); return 0; }\n")
    made = subprocess.run([need("cc"), "-static", "-o", path, source], capture_output=True)
    if made.returncode != 0:
        raise Skip("no static libc")
    return path


def test_doctor_reasons(lab):
    done = doctor(lab, "--", "true")
    equal("status of no CUDA at all", done.status, 0)
    says(done, "there was no device memory to trace")
    done = doctor(lab, "--", "sleep", "0.5")
    equal("status of libraries that are not used", done.status, 0)
    says(done, "no process was seen to open a GPU: there was no device memory to trace")
    done = doctor(lab, "--", sys.executable, "-c", OPENS_A_DEVICE)
    equal("status of a device that no hooked call opened", done.status, 1)
    says(done, "FAULT no trace although 1 process opened a GPU")
    done = doctor(lab, "--", "/nonexistent/program")
    equal("status of no program", done.status, 1)
    cleaned = ["env", "-u", "LD_PRELOAD", "sh", "-c", "sleep 2; exit 0"]
    done = doctor(lab, "--", *cleaned)
    says(done, "without the shim in LD_PRELOAD")
    done = doctor(lab, "--", static_program(lab))
    equal("status of a static program", done.status, 1)
    says(done, "statically linked")


def test_doctor_pid(lab):
    sleeper = [program("storm"), "1", "0", "--pause", "10000"]
    plain = lab.start(lab.on_simgpu(sleeper))
    traced = lab.start(*lab.preload_command(sleeper))
    until = time.monotonic() + 60
    while time.monotonic() < until and not all(uses_cuda(p.pid) for p in (plain, traced)):
        time.sleep(0.05)
    try:
        for process, status, text in ((plain, 1, "without the shim in LD_PRELOAD"),
                                      (traced, 0, "the shim is loaded")):
            pid = storm_below(process.pid)
            done = tool("doctor", "--pid", str(pid))
            equal(f"status\n{done.out}{done.err}", done.status, status)
            says(done, text)
            says(done, "libcuda.so.1")
    finally:
        for process in (plain, traced):
            os.killpg(process.pid, 9)
            process.communicate()
    equal("no such process", tool("doctor", "--pid", "4194000").status, 1)


def uses_cuda(root):
    """Has the storm below the process been started, and the driver in it?"""
    try:
        with open(f"/proc/{storm_below(root)}/maps", encoding="ascii", errors="replace") as maps:
            return "libcuda.so.1" in maps.read()
    except (AssertionError, OSError):
        return False


def storm_below(root):
    table = processes()
    for pid, (parent, name) in table.items():
        above = pid
        while above > 1 and above != root:
            above = table.get(above, (0, ""))[0]
        if above == root and name == "storm":
            return pid
    raise AssertionError("no storm is running")
