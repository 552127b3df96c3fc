# SPDX-License-Identifier: Apache-2.0
"""pytest plugin: a test may say how much device memory it takes.

    @pytest.mark.limit_device_memory("24 MiB")
    def test_step(): ...

It fails when PyTorch had more than that allocated on one device at any moment of the test, beyond what
was allocated there when it began. Checked where the recording library is loaded
(`vramscope run -- pytest …`); elsewhere the run ends with a line that says how many limits were not
checked.
"""

import re

import pytest

import vramscope

MARKER = "limit_device_memory"
DEVICES = 64
UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
         "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


def bytes_of(size):
    """"24 MiB", "1.5 GB" or a number of bytes."""
    if isinstance(size, int) and size >= 0:
        return size
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?i?B)\s*", str(size), re.IGNORECASE)
    if found is None:
        raise ValueError(f'{MARKER} takes a size like "24 MiB", "1.5 GB" or 4096, not {size!r}')
    return int(float(found[1]) * UNITS[found[2].upper()])


def in_words(size):
    for unit, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size} B"


def _limit_of(marker):
    if len(marker.args) != 1 or marker.kwargs:
        raise ValueError(f"{MARKER} takes one size")
    return bytes_of(marker.args[0])


def _allocated_now():
    """{device: bytes}; the devices that PyTorch has not used yet hold nothing."""
    peaks = {device: vramscope.peak(device) for device in range(DEVICES)}
    return {device: figures.now if figures else 0 for device, figures in peaks.items()}


def pytest_configure(config):
    config.addinivalue_line("markers", f"{MARKER}(size): fails a test in which PyTorch allocates more "
                                       "device memory than this (vramscope)")
    config.stash[_unchecked] = 0


_unchecked = pytest.StashKey()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    marker = item.get_closest_marker(MARKER)
    if marker is None:
        yield
        return
    limit = _limit_of(marker)
    if not vramscope.is_loaded():
        item.config.stash[_unchecked] += 1
        yield
        return
    before = _allocated_now()
    for device in range(DEVICES):
        vramscope.reset_peak(device)
    vramscope.begin(item.nodeid)
    outcome = yield
    vramscope.end()
    if outcome.excinfo is not None:
        return
    over = _over(limit, before)
    if over:
        outcome.force_exception(pytest.fail.Exception("\n".join(over), pytrace=False))


def _over(limit, before):
    lines = []
    for device in range(DEVICES):
        figures = vramscope.peak(device)
        taken = figures.allocated - before[device] if figures else 0
        if taken > limit:
            lines.append(f"device {device}: PyTorch had {in_words(taken)} more allocated than when the test "
                         f"began, {in_words(taken - limit)} over the limit of {in_words(limit)}; "
                         "`vramscope report` says whose")
    return lines


def pytest_terminal_summary(terminalreporter, config):
    if config.stash[_unchecked]:
        terminalreporter.write_line(
            f"vramscope: {config.stash[_unchecked]} device-memory limits were not checked: "
            "start the tests with `vramscope run -- pytest`")
