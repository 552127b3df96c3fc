# SPDX-License-Identifier: Apache-2.0
"""numba-cuda: arrays, pinned and managed memory, a kernel; all of CUDA reached through the
driver's table of entry points."""
import books
import numpy as np
from numba import cuda


@cuda.jit
def increment(array):
    i = cuda.grid(1)
    if i < array.size:
        array[i] += 1


def main():
    print("available", cuda.is_available())
    small = cuda.to_device(np.arange(1000, dtype=np.float32))
    books.moment("small array")
    large = cuda.device_array((64 * books.MIB,), np.uint8)
    books.moment("large array", direct=66 * books.MIB)
    print("copied back", small.copy_to_host()[:4].tolist())
    stream = cuda.stream()
    pinned = cuda.pinned_array(books.MIB, dtype=np.uint8)
    mapped = cuda.mapped_array(1000)
    managed = cuda.managed_array(1000)
    books.moment("host memory")
    increment[4, 256](small)
    cuda.synchronize()
    books.moment("kernel")
    print("memory", cuda.current_context().get_memory_info())
    del large
    cuda.current_context().memory_manager.deallocations.clear()
    books.moment("freed", direct=2 * books.MIB)
    print("memory", cuda.current_context().get_memory_info())
    print(pinned.nbytes, mapped.nbytes, managed.nbytes, stream.handle is not None)


main()
