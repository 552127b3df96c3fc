#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The wheel for any system against the native readers: every figure that both give, of every trace of
tests/cli and tests/trace and of random ones, in the report's JSON and in the page's data; traces that are
packed, cut and damaged. The wheel is built and read from where it would be installed.
test_reader.py --vramscope PROGRAM --mktrace PROGRAM --trace-writer PROGRAM --page TEMPLATE [--every]"""

import argparse
import gzip
import io
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
sys.path[:0] = [str(HERE.parent / "cli"), str(HERE.parent / "export")]
import chromium  # noqa: E402
import random_script  # noqa: E402
from zstd_module import zstandard  # noqa: E402

# Of the pure report alone.
OWN = {"reader", "left_out", "out_of_memory_events", "device_bytes_left_out"}
KEY_REASONS = 2 | 4 | 8 | 16 | 64
FLIPS, CUTS = 12, 12
# Seeds of random_script.py: the first that found faults in one of the two folds, or pages.
FOUND, RANDOM, RANDOM_EVERY = (1068, 1398, 5112, 5830, 30021, 30129, 40333), 50, 1200


def run(*command):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                          timeout=60)
    return done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")


def native_json(vramscope, path):
    _, out, _ = run(vramscope, "report", "--json", path)
    return json.loads(out) if out else None


def data_of(page):
    start = page.index('<script type="application/json" id="data">') + len('<script type="application/json" id="data">')
    return json.loads(page[start:page.index("</script>", start)])


# ---- reports -----------------------------------------------------------------------------------------


class Compared:
    """How many figures were looked at, and which differ."""

    def __init__(self):
        self.count, self.differences = 0, []

    def same(self, where, pure, native):
        self.count += 1
        if pure != native:
            self.differences.append(f"{where}: {pure!r}, native {native!r}")

    def subset(self, where, pure, native):
        """All that the pure report says stands in the native one."""
        if isinstance(pure, dict) and isinstance(native, dict):
            for name, value in pure.items():
                if name in OWN:
                    continue
                if name not in native:
                    self.differences.append(f"{where}.{name}: not in the native report")
                    continue
                self.subset(f"{where}.{name}", value, native[name])
        elif isinstance(pure, list) and isinstance(native, list) and len(pure) == len(native):
            for i, (one, other) in enumerate(zip(pure, native)):
                self.subset(f"{where}[{i}]", one, other)
        else:
            self.same(where, pure, native)


def site_key(site):
    has_stack = bool(site["frames"])
    return json.dumps([site["kind"], site["layer"], site["device"], site["owner"], site["api"], site["segment"],
                       site["frames"], site.get("stack") if has_stack else None])


STATS = ("allocs", "frees", "failed", "bytes", "peak_bytes", "peak_count", "end_bytes", "end_count")


def compare_sites(compared, pure, native, lossy):
    sums = ({}, {})
    for side, sites in zip(sums, (pure, native)):
        for site in sites:
            if site["device"] is None or lossy and site["layer"] != "framework":
                continue
            own = side.setdefault(site_key(site), [0] * len(STATS))
            for i, name in enumerate(STATS):
                own[i] += site[name]
    for key in sorted(set(sums[0]) | set(sums[1])):
        nothing = [0] * len(STATS)
        named = json.loads(key)
        where = f"sites {named[:6]} stack {named[7]}"
        compared.same(where, sums[0].get(key, nothing), sums[1].get(key, nothing))


def compare_reports(compared, pure, native):
    compared.subset("", {name: value for name, value in pure.items() if name != "sites"}, native)
    compare_sites(compared, pure["sites"], native["sites"], pure["trace"]["lost"] > 0)


# ---- pages -------------------------------------------------------------------------------------------------


def sums(values):
    out, value = [], 0
    for change in values:
        value += change
        out.append(value)
    return out


def curves(device):
    """{time: {column: value after the last event of that time}}"""
    rows = {name: sums(values) for name, values in device["rows"].items()}
    times = rows.pop("time")
    return {time: {name: values[i] for name, values in rows.items()} for i, time in enumerate(times)}


def places(data):
    strings, out = data["strings"], []
    frames = [tuple(strings[n] if n >= 0 else None for n in (f[0], f[1], f[3])) + (f[2], f[4], f[5]) for f in data["frames"]]
    for layer, kind, owner, label, _, main, stack in data["places"]:
        name = strings[owner] if owner >= 0 and kind == 0 else None
        out.append((layer, kind, name, strings[label] if label >= 0 else None, main, tuple(frames[i] for i in stack)))
    return out


def live_sets(data):
    """{(device, sequence): {place: (bytes, count)}} and the sums."""
    known, out = places(data), {}
    for instant in data["instants"]:
        live, flat = {}, instant["live"]
        for number, size, count in zip(flat[::3], flat[1::3], flat[2::3]):
            was = live.get(known[number], (0, 0))
            live[known[number]] = (was[0] + size, was[1] + count)
        out[instant["device"], instant["sequence"]] = (instant, live, instant["total"])
    return out


def steps(rows, times):
    """The row that holds at each of these times."""
    out, row = {}, None
    for time in times:
        row = rows.get(time, row)
        out[time] = row
    return out


def compare_curves(compared, where, pure, native, shuffled):
    mine, theirs = curves(pure), curves(native)
    times, common = sorted(set(mine) | set(theirs)), set(mine) & set(theirs)
    mine, theirs = steps(mine, times), steps(theirs, times)
    for time in times:
        own, other = mine[time], theirs[time]
        if own is None or other is None:  # before the first row all is 0
            present = own or other
            compared.same(f"{where} at {time}", [present["live"], present["reserved"]], [0, 0])
            continue
        for column, value in own.items():
            if column == "pinned" and (time not in common or shuffled):
                continue  # of the whole process: a device's rows need not be of the same moments
            if column == "rest":
                expected = other["direct"] + other["implicit"] + other["unexplained"] if other["measured"] else 0
            else:
                expected = other[column]
            if own["measured"] or column not in ("device", "measured", "other", "rest"):
                compared.same(f"{where} {column} at {time}", value, expected)


def compare_pages(compared, pure, native, shuffled=False):
    lossy = pure["trace"]["lost"] > 0
    compared.subset("page.trace", pure["trace"], native["trace"])
    theirs = {device["index"]: device for device in native["devices"]}
    for device in pure["devices"]:
        where, other = f"page.devices[{device['index']}]", theirs[device["index"]]
        for name in ("name", "total", "framework", "peak", "peak_ns", "reserved_peak"):
            compared.same(f"{where}.{name}", device[name], other[name])
        if device["device_peak"] is not None:
            compared.same(f"{where}.device_peak", device["device_peak"], other["device_peak"])
        compare_curves(compared, where, device, other, shuffled)
    mine, natives, peaks = live_sets(pure), live_sets(native), 0
    for key, (instant, live, total) in mine.items():
        if key not in natives:
            compared.same(f"page instant {key} is of the end or the peak", instant["reasons"] & 66, 0)
        elif not lossy:
            compared.same(f"page live at {key}", live, natives[key][1])
            compared.same(f"page live sums at {key}", total, natives[key][2])
        peaks += bool(instant["reasons"] & 2)
    if not lossy:
        shown = {device["index"] for device in pure["devices"]}
        compared.same("page instants at a peak", peaks,
                      sum(bool(one[0]["reasons"] & 2) and device in shown for (device, _), one in natives.items()))


# ---- traces --------------------------------------------------------------------------------------------------


class Lab:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        wheels = folder / "wheels"
        status, out, why = run(sys.executable, SOURCE / "scripts/packaging/pure_wheel.py", options.page, wheels, "9.8.7")
        assert status == 0, why
        wheel = pathlib.Path(out.strip())
        assert wheel.name == "vramscope-9.8.7-py3-none-any.whl", wheel
        with zipfile.ZipFile(wheel) as packed:
            packed.extractall(folder / "installed")
        sys.path.insert(0, str(folder / "installed"))
        from vramscope_reader import figures, page, text
        from vramscope_reader.trace import NotATrace
        self.figures, self.page, self.text, self.refused = figures, page, text, NotATrace

    def traces(self):
        for script in sorted((SOURCE / "tests/cli/traces").rglob("*.txt")):
            out = self.folder / f"{script.parent.name}-{script.stem}.vscope"
            assert run(self.options.mktrace, script, out)[0] == 0, script
            yield out
        writer = self.options.trace_writer
        for shape in run(writer)[1].split():
            out = self.folder / f"shape-{shape}.vscope"
            assert run(writer, shape, out)[0] == 0, shape
            yield out

    def compare(self, path, with_page=True, shuffled=False):
        compared = Compared()
        native = native_json(self.options.vramscope, path)
        try:
            figures = self.figures.Figures(str(path))
        except self.refused:
            compared.same("both refuse", None, native)
            return compared
        if native is None:
            compared.same("both read it", True, False)
            return compared
        pure = json.loads(json.dumps(self.figures.report_json(figures)))
        compare_reports(compared, pure, native)
        assert f"{figures.fold.events} events" in self.text.report_text(figures)
        figures.trace.close()
        if with_page:
            status, out, why = run(self.options.vramscope, "export", "-f", "html", "-o", "-", path)
            assert status == 0, why
            page = io.BytesIO()
            self.page.write_page(str(path), "9.8.7", page).trace.close()
            compare_pages(compared, data_of(page.getvalue().decode()), data_of(out), shuffled)
        return compared


def note(results, path, compared):
    results[0] += 1
    results[1] += compared.count
    for line in compared.differences[:8]:
        print(f"{path.name}{line}")
    results[2] += len(compared.differences)


def check_random(lab, seeds, results):
    """Events that may follow each other in any order."""
    script, path = lab.folder / "random.txt", lab.folder / "random.vscope"
    for seed in seeds:
        script.write_text(random_script.random_script(seed), encoding="utf-8")
        assert run(lab.options.mktrace, script, path)[0] == 0, seed
        note(results, pathlib.Path(f"seed {seed} "), lab.compare(path, seed % 10 == 0 or seed in FOUND, shuffled=True))


def check_packed(lab, path):
    """The same JSON of a trace that is packed."""
    plain = lab.figures.report_json(lab.figures.Figures(str(path)))
    data, packed = path.read_bytes(), [path.with_suffix(".vscope.gz"), path.with_suffix(".zip")]
    packed[0].write_bytes(gzip.compress(data))
    with zipfile.ZipFile(packed[1], "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("report.txt", "a page\n" * 50)
        out.writestr("a.vscope", data)
    if zstandard is not None:
        packed.append(path.with_suffix(".vscope.zst"))
        packed[-1].write_bytes(zstandard.ZstdCompressor().compress(data))
    for one in packed:
        figures = lab.figures.Figures(str(one))
        report = lab.figures.report_json(figures)
        report["trace"]["file"] = plain["trace"]["file"]
        assert report == plain, one
        cut = one.with_name("cut-" + one.name)
        cut.write_bytes(one.read_bytes()[:-max(len(data) // 8, 40)])
        try:
            figures = lab.figures.Figures(str(cut))
            assert not figures.trace.is_whole() and not figures.complete, cut
        except lab.refused as error:  # zstd gives nothing of a block that is cut
            assert one.suffix == ".zst" and "empty" in str(error), cut


def check_damaged(lab, path, results):
    """Cut or with a byte flipped: still every figure of what both can read."""
    data, broken = path.read_bytes(), path.with_name("broken.vscope")
    for i in range(1, CUTS + 1):
        broken.write_bytes(data[:64 + i * (len(data) - 64) // (CUTS + 1)])
        note(results, pathlib.Path(f"{path.name} cut {i} "), lab.compare(broken, with_page=False))
    for i in range(1, FLIPS + 1):
        flipped = bytearray(data)
        flipped[i * len(data) // (FLIPS + 1)] ^= 0x40
        broken.write_bytes(flipped)
        note(results, pathlib.Path(f"{path.name} flipped {i} "), lab.compare(broken, with_page=False))


def command(lab, *words):
    done = subprocess.run([sys.executable, "-m", "vramscope", *map(str, words)], cwd=lab.folder / "installed",
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=60)
    return done.returncode, done.stdout, done.stderr.decode()


def check_command(lab, path):
    status, out, why = command(lab, "report", path)
    assert status == 0 and b"Made by vramscope's reader in Python alone" in out and not why, why
    page = lab.folder / "page.html"
    assert command(lab, "html", path, "-o", page)[0] == 0 and b"D3" in page.read_bytes()
    status, _, why = command(lab, "html", path, "-o", page)
    assert status == 1 and "--force" in why and why.count("\n") == 1, why
    cut = lab.folder / "cut.vscope"
    cut.write_bytes(path.read_bytes()[:-200])
    status, out, why = command(lab, "report", "--json", cut)
    assert status == 1 and not json.loads(out)["trace"]["complete"] and why.count("\n") == 1, why
    (lab.folder / "cut.vscope.ring").write_bytes(b"left over")
    assert b"the ring beside the trace" in command(lab, "report", cut)[1]
    for bad, data in (("empty", b""), ("text", b"no trace\n" * 99)):
        (lab.folder / bad).write_bytes(data)
        status, out, why = command(lab, "report", lab.folder / bad)
        assert status == 1 and not out and why.count("\n") == 1 and bad in why, why
    assert command(lab, "report", lab.folder / "none")[0] == 1
    assert command(lab, "report")[0] == 2


def check_browser(lab, path):
    """The page in headless Chromium: the same figures as in the native report, and no error of its script."""
    peak = native_json(lab.options.vramscope, path)["devices"][0]["peak"]
    browser = chromium.Page(chromium.find())
    try:
        browser.open(lab.folder / "page.html")
        browser.frame()
        for card, field in (("allocated", "allocated_bytes"), ("reserved", "reserved_bytes"), ("device", "device_bytes")):
            shown = browser.run(f'document.getElementById("peak-{card}").dataset.bytes')
            assert int(shown) == peak[field], (card, shown, peak[field])
        for key in "p]e[o":
            browser.key(key)
        assert "out of memory" in browser.run('document.getElementById("instant-title").textContent')
        left_out = browser.run('document.getElementById("left-out").textContent')
        assert "reader in Python alone" in left_out, left_out
        assert not browser.errors and browser.requests == [(lab.folder / "page.html").as_uri()], browser.errors
    finally:
        browser.close()


def main():
    parser = argparse.ArgumentParser()
    for name in ("vramscope", "mktrace", "trace-writer", "page"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--every", action="store_true", help="every trace also cut and flipped, more random ones")
    options = parser.parse_args()
    if zstandard is None:
        print("skipped: no python3 with the module zstandard (apt-get install python3-zstandard)")
        return 77
    if "@DATA@" not in pathlib.Path(options.page).read_text(encoding="utf-8"):
        print("skipped: built without D3 (apt-get install node-d3-zoom node-d3-scale)")
        return 77
    folder, results = pathlib.Path(tempfile.mkdtemp()), [0, 0, 0]
    try:
        lab = Lab(options, folder)
        for path in lab.traces():
            note(results, path, lab.compare(path))
            if options.every or path.stem == "traces-stacks":
                check_damaged(lab, path, results)
            if path.stem == "traces-stacks":
                check_packed(lab, path)
                check_command(lab, path)
                if chromium.find() and not options.every:
                    check_browser(lab, path)
        seeds = range(RANDOM_EVERY if options.every else RANDOM)
        check_random(lab, [*FOUND, *seeds], results)
    finally:
        shutil.rmtree(folder)
    print(f"{results[0]} traces, {results[1]} figures compared, {results[2]} different")
    return 1 if results[2] or results[0] < 90 or results[1] < 3000 else 0


if __name__ == "__main__":
    sys.exit(main())
