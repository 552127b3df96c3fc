# SPDX-License-Identifier: Apache-2.0
"""Host memory of every kind at once: a DataLoader that pins, one whose batches wait in shared
memory, a registered range, a file in /dev/shm that is removed while mapped.

Prints a line of JSON with what PyTorch and /proc say of it, and ends at once, so that all of
it is still there at the end.
"""
import json
import mmap
import os
import sys
import time

import torch

MIB = 1 << 20
PAGE = 4096
REGISTERED = 3 * PAGE
BATCHES_AHEAD = 2


class Samples(torch.utils.data.Dataset):
    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        return torch.full((3 * MIB,), index % 100, dtype=torch.uint8)


def loader(workers, pinned):
    return iter(torch.utils.data.DataLoader(Samples(), batch_size=1, num_workers=workers,
                                            pin_memory=pinned, prefetch_factor=BATCHES_AHEAD,
                                            multiprocessing_context="fork"))


def settle(batches, arrived):
    """Waits until every batch the loader has asked for has come, in `arrived`, the queue it takes
    them from; one that came before its turn is not there, and not counted as asked for either."""
    deadline = time.monotonic() + 120
    while arrived.qsize() != batches._tasks_outstanding:
        if time.monotonic() > deadline:
            sys.exit("the workers did not settle")
        time.sleep(0.01)


def removed_file():
    path = f"/dev/shm/vramscope-test-{os.getpid()}"
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    os.write(descriptor, b"x" * MIB)
    mapped = mmap.mmap(descriptor, MIB)
    os.close(descriptor)
    os.unlink(path)
    return mapped


def tree():
    """This process and all that come from it."""
    found = [os.getpid()]
    for pid in found:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as children:
                found += [int(child) for child in children.read().split()]
    return found


def shared_files():
    """Bytes of each file in /dev/shm that the tree has open or mapped, by device and inode."""
    files = {}
    for pid in tree():
        for name in os.listdir(f"/proc/{pid}/fd"):
            link = f"/proc/{pid}/fd/{name}"
            try:
                if os.readlink(link).startswith("/dev/shm/"):
                    at = os.stat(link)
                    files[at.st_dev, at.st_ino] = at.st_blocks * 512
            except FileNotFoundError:
                continue
        with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as maps:
            mapped = [line.split(None, 5) for line in maps if " /dev/shm/" in line]
        for span, _, _, device, inode, _ in mapped:
            start, end = (int(part, 16) for part in span.split("-"))
            major, minor = (int(part, 16) for part in device.split(":"))
            files.setdefault((os.makedev(major, minor), int(inode)), end - start)
    return files


def smaps_resident(name):
    """Resident bytes of the mappings of this process whose file begins with `name`."""
    total, inside = 0, False
    with open("/proc/self/smaps", encoding="utf-8", errors="replace") as smaps:
        for line in smaps:
            words = line.split()
            if "-" in words[0] and not words[0].endswith(":"):
                inside = len(words) > 5 and words[5].startswith(name)
            elif inside and words[0] == "Rss:":
                total += int(words[1]) * 1024
    return total


def resident():
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * PAGE


def main():
    keep = [torch.zeros(5 * MIB, dtype=torch.uint8).pin_memory(), removed_file()]
    free = torch.zeros(6 * MIB, dtype=torch.uint8).pin_memory()
    del free  # cached now: eight pinned MiB of which nobody has anything
    registered = torch.zeros(REGISTERED + PAGE, dtype=torch.uint8)
    aligned = (registered.data_ptr() + PAGE - 1) // PAGE * PAGE
    assert int(torch.cuda.cudart().cudaHostRegister(aligned, REGISTERED, 0)) == 0
    pinning, waiting = loader(2, True), loader(1, False)
    keep += [next(pinning), next(waiting), registered]
    keep[-2].sum()  # its pages are this process's, too
    settle(pinning, pinning._data_queue)
    settle(waiting, waiting._worker_result_queue)
    statistics = getattr(torch._C, "_cuda_hostMemoryStats", dict)()
    files = shared_files()
    print(json.dumps({
        "pid": os.getpid(), "shared": sum(files.values()), "shared_count": len(files),
        "waiting": (1 + BATCHES_AHEAD) * 3 * MIB, "removed": MIB, "registered": REGISTERED,
        "torch_mapped": smaps_resident("/dev/shm/torch_"),
        "allocated": statistics.get("allocated_bytes", {}).get("current"),
        "active": statistics.get("active_bytes", {}).get("current"),
        "asked": 5 * MIB, "resident": resident()}), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
