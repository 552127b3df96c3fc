# SPDX-License-Identifier: Apache-2.0
"""Tests with limits on device memory, for pytest; python_module.py knows what becomes of each."""

import pytest
import torch

import vramscope

MIB = 1 << 20


def allocate(mib):
    return torch.empty(mib * MIB, dtype=torch.uint8, device="cuda")


@pytest.mark.limit_device_memory("24 MiB")
def test_exactly_the_limit():
    kept = allocate(16)
    del kept
    allocate(20)
    allocate(24)


@pytest.mark.limit_device_memory("24 MiB")
def test_over_the_limit():
    kept = allocate(16)
    other = allocate(10)
    del kept, other


@pytest.fixture
def held():
    return allocate(100)


@pytest.mark.limit_device_memory("24 MiB")
def test_what_was_held_before_does_not_count(held):
    allocate(20)
    vramscope.step(1)
    vramscope.mark("in the middle")


@pytest.mark.limit_device_memory("1 GiB")
def test_that_fails_by_itself():
    raise RuntimeError("its own failure")


@pytest.mark.limit_device_memory("a lot")
def test_with_a_wrong_size():
    pass


def test_without_a_limit():
    torch.cuda.reset_peak_memory_stats()
    vramscope.reset_peak()
    before = vramscope.peak()
    kept = allocate(30)
    del kept
    after = vramscope.peak()
    assert after.allocated - before.now == 30 * MIB
    assert after.allocated == torch.cuda.max_memory_allocated()
    assert after.reserved == torch.cuda.max_memory_reserved()
    assert after.now == torch.cuda.memory_allocated() == before.now
    assert vramscope.peak(1) is None
