# SPDX-License-Identifier: Apache-2.0
"""JAX with its CUDA plugin: everything found by dlopen and dlsym, most of the device taken
in one piece. Two things are the simulated device's: no /dev/nvidia* to look for, and no
check of library versions that stand-ins do not have."""
import os

os.environ["JAX_PLATFORMS"] = "cuda"
os.environ["JAX_SKIP_CUDA_CONSTRAINTS_CHECK"] = "1"

import books
import jax
import jax._src.hardware_utils as hardware
import numpy as np

hardware.has_visible_nvidia_gpu = lambda: True

import jax.numpy as jnp


def used(device):
    return device.memory_stats()["bytes_in_use"]


def main():
    device = jax.devices()[0]
    print("platform", device.platform, "devices", len(jax.devices()))
    x = jax.device_put(np.ones((1024, 1024), np.float32))
    x.block_until_ready()
    books.moment("array on the device")
    print("copied back", np.asarray(x)[0, :2].tolist(), "in use", used(device))
    y = jax.jit(lambda a: jnp.tanh(a) * 2 + 1)(x)
    y.block_until_ready()
    books.moment("elementwise")
    z = jax.jit(lambda a: a @ a)(x)
    z.block_until_ready()
    books.moment("matmul")
    gradient = jax.grad(lambda w: (jnp.tanh(x @ w) ** 2).sum())(x)
    gradient.block_until_ready()
    books.moment("gradient")
    print("shapes", y.shape, z.shape, gradient.shape)
    print("limit", device.memory_stats()["bytes_limit"], "in use", used(device))


main()
