# SPDX-License-Identifier: Apache-2.0
"""Problems of programs that share a device, and of engines that take most of it: one kind a case,
each in processes of its own; "NAME healthy" is the same program with the fix.

usage: torch_engines.py "NAME [healthy]" ... (on two devices of 4 GiB)
Prints a line of JSON per process: its id, the case, its role, PyTorch's and the device's own
figures at its end, and the ids of the processes that took part.
"""
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import time
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

MIB = 1 << 20
ANSWERED_S = 2  # by then NVML has told who else is on the device
SLEEPING = pathlib.Path(os.environ["VRAMSCOPE_BUILD"]) / "cases" / "lib" / "libsleeping.so"
kept = []
told = {}
warnings.filterwarnings("ignore", message="The CUDA Graph is empty")


def empty(mib, device="cuda"):
    return torch.empty(mib * MIB, dtype=torch.uint8, device=device)


class Partner:
    """A forked process that does `work` first, and stays until this one ends."""

    def __init__(self, work):
        ready, self.alive = os.pipe(), os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.alive[1])
            work()
            tell("partner")
            os.write(ready[1], b"x")
            os.read(self.alive[0], 1)
            os._exit(0)
        os.close(self.alive[0])
        os.read(ready[0], 1)
        told["partner"] = self.pid

    def end(self):
        os.close(self.alive[1])
        os.waitpid(self.pid, 0)


def tell(role):
    line = {"pid": os.getpid(), "case": told["case"], "role": role, "told": told, "devices": []}
    for device in range(torch.cuda.device_count()):
        if torch.cuda.memory_reserved(device):  # else looking would make a context there
            free, total = torch.cuda.mem_get_info(device)
            line["devices"].append({"device": device, "used": total - free,
                                    "allocated": torch.cuda.memory_allocated(device),
                                    "reserved": torch.cuda.memory_reserved(device)})
    print(json.dumps(line), flush=True)


def attempt(request):
    """What the request returns; None where it fails, and the process will."""
    try:
        return request()
    except torch.cuda.OutOfMemoryError:
        told["failed"] = True
        return None


# ---- two processes on one device --------------------------------------------------------------

def cache_of_another(healthy, device="cuda:0"):
    """A trainer's cache starves the engine that wakes beside it."""
    def train():
        kept.append(empty(500, device))
        batches = [empty(500, device) for _ in range(5)]
        del batches
        if healthy:
            torch.cuda.empty_cache()

    partner = Partner(train)
    kept.append(attempt(lambda: empty(2000, device)))  # FAILS cache_of_another
    partner.end()


def cache_on_second(healthy):
    """The same on the second device, while the first is empty."""
    cache_of_another(healthy, "cuda:1")


def tensors_of_another(healthy):
    """A trainer still holds its tensors: there is nothing to give back."""
    partner = Partner(lambda: kept.append(empty(200 if healthy else 3000)))
    kept.append(attempt(lambda: empty(2000)))  # FAILS tensors_of_another
    partner.end()


def utilization(healthy):
    """An engine takes nine tenths of the device, of which another process holds a part."""
    if not healthy:
        hold = "import sys, torch; held = torch.empty(1 << 30, dtype=torch.uint8, device='cuda'); " \
               "print(flush=True); sys.stdin.read()"
        other = subprocess.Popen([sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 pass_fds=[all_gone[1]], env=dict(os.environ, VRAMSCOPE_DISABLE="1"))
        other.stdout.readline()
        told["untraced"] = other.pid
        kept.append(other)  # it ends with us
    weights = [empty(100) for _ in range(8)]
    activations = [empty(64) for _ in range(4)]
    del activations
    total = torch.cuda.mem_get_info()[1]
    budget = 0.9 * total - torch.cuda.max_memory_allocated() - (0 if not healthy else 400 * MIB)
    kept.append(weights)
    attempt(lambda: kept.extend(empty(64) for _ in range(int(budget // (64 * MIB)))))  # FAILS utilization


# ---- memory beside the cache, or beneath it ------------------------------------------------------

def beside(healthy):
    """A library that asks the device itself is refused what PyTorch only keeps."""
    kept.append(empty(300))
    batches = [empty(700) for _ in range(4)]
    del batches
    if healthy:
        torch.cuda.empty_cache()
    address = ctypes.c_void_p()
    taken = ctypes.CDLL(None).cudaMalloc(ctypes.byref(address), ctypes.c_size_t(1500 * MIB))  # FAILS beside
    told["failed"] = taken != 0


def sleeping_pool():
    allocator = torch.cuda.memory.CUDAPluggableAllocator(str(SLEEPING), "sleep_malloc", "sleep_free")
    pool = torch.cuda.MemPool(allocator.allocator())
    kept.extend([allocator, pool])
    return pool, ctypes.CDLL(str(SLEEPING))


def asleep(healthy):
    """The memory that a sleeping engine gave back is taken when it wakes."""
    pool, library = sleeping_pool()
    with torch.cuda.use_mem_pool(pool):
        kept.extend([empty(1000), empty(1800)])
    library.sleep_all()
    training = empty(3400)
    if healthy:
        del training
        torch.cuda.empty_cache()
    told["failed"] = library.wake_all() != 0  # FAILS asleep


def asleep_beside_cache(healthy):
    """As before, but what took it is free again, in PyTorch's cache."""
    pool, library = sleeping_pool()
    with torch.cuda.use_mem_pool(pool):
        kept.extend([empty(1000), empty(1800)])
    library.sleep_all()
    training = empty(3400)
    del training
    if healthy:
        torch.cuda.empty_cache()
    told["failed"] = library.wake_all() != 0  # FAILS asleep_beside_cache


def sleep_and_forget(healthy):
    """Each time it wakes a handle is taken that nobody releases: sleeping gives nothing back."""
    pool, library = sleeping_pool()
    mark = ctypes.CDLL(None).vramscope_step
    mark.argtypes, mark.restype = [ctypes.c_uint64], None
    with torch.cuda.use_mem_pool(pool):
        kept.append(empty(20))
    for number in range(24):
        mark(number)
        library.sleep_all()
        (library.wake_all if healthy else library.wake_and_forget)()  # FORGETS
        batch = empty(10)
        del batch
    library.sleep_all()


# ---- devices -----------------------------------------------------------------------------------

def context_elsewhere(healthy):
    """A process of the second device loads its checkpoint to where it was saved: the first."""
    checkpoint = empty(20, "cuda:1" if healthy else "cuda:0")  # LOADS
    kept.append(checkpoint.to("cuda:1"))
    del checkpoint
    kept.append(empty(1000, "cuda:1"))


# ---- graphs ------------------------------------------------------------------------------------

def graphs(healthy):
    """One executable graph a size; they share a pool, and cost more than all tensors."""
    given, pool = torch.zeros(1024, 1024, device="cuda"), None
    time.sleep(ANSWERED_S)
    for size in range(2 if healthy else 12):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool):  # CAPTURES
            result = given
            for _ in range(10 + size):
                result = result * 2
        pool = graph.pool()
        kept.append(graph)
    told["graphs"] = len(kept)


CASES = {case.__name__: case for case in
         (cache_of_another, cache_on_second, tensors_of_another, utilization, beside, asleep,
          asleep_beside_cache, sleep_and_forget, context_elsewhere, graphs)}


def run(words):
    name, *rest = words.split()
    told["case"] = words
    CASES[name](rest == ["healthy"])
    tell("main")
    os._exit(1 if told.get("failed") else 0)


for words in sys.argv[1:]:
    all_gone = os.pipe()  # until nobody has its other end
    child = os.fork()
    if child == 0:
        run(words)
    os.close(all_gone[1])
    os.waitpid(child, 0)
    os.read(all_gone[0], 1)
    os.close(all_gone[0])
