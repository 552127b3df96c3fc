#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page in headless Chromium, from file://: values against report --json, clicks, keys,
search, theme and paper. With --long PROGRAM (tests/bench/export_trace) the size of the page of
ten million events, and its frames while zooming:
test_html_browser.py --vramscope PROGRAM --mktrace PROGRAM [--long PROGRAM] [--shots FOLDER]."""

import argparse
import base64
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

import chromium
import lab
import test_html

CURVE = 'JSON.stringify(document.getElementById("curve").getBoundingClientRect())'
MOST_BYTES, MOST_CPU_S, MOST_FRAME_MS = 8 << 20, 10, 33

ZOOM_FRAMES = """new Promise((done) => {
  const box = document.getElementById("curve-box"), area = box.getBoundingClientRect();
  const gaps = [], count = 120;
  const step = (now) => {
    const began = performance.now();
    box.dispatchEvent(new WheelEvent("wheel", { deltaY: gaps.length < count / 2 ? -60 : 60, bubbles: true,
      cancelable: true, clientX: area.x + area.width / 3, clientY: area.y + 100 }));
    requestAnimationFrame(() => { gaps.push(performance.now() - began); if (gaps.length < count) requestAnimationFrame(step); else done(gaps); });
  };
  requestAnimationFrame(step);
})"""


def number(page, selector, name="bytes"):
    return int(page.run(f"document.querySelector({json.dumps(selector)}).dataset.{name}"))


def text(page, selector):
    return page.run(f"document.querySelector({json.dumps(selector)}).textContent")


def curve_point(page, share):
    area = json.loads(page.run(CURVE))
    left, right = area["x"] + 74, area["x"] + area["width"] - 12
    return left + share * (right - left), area["y"] + 200


def show(page, selector):
    page.run(f"document.querySelector({json.dumps(selector)}).scrollIntoView({{block: 'center'}})")


def check_values(page, report):
    peak = report["devices"][0]["peak"]
    assert number(page, "#peak-allocated") == peak["allocated_bytes"]
    assert number(page, "#peak-reserved") == peak["reserved_bytes"]
    assert number(page, "#peak-device") == peak["device_bytes"]
    assert number(page, "#end-allocated") == report["devices"][0]["end"]["allocated_bytes"]
    ooms = [one for one in report["ooms"] if not one["handled"]]
    assert ooms[-1]["why"] in text(page, "#findings li:first-child")


def check_hover(page, rows):
    """At 40 % of the run the tip tells the row that the timeline has there."""
    show(page, "#curve")
    x, y = curve_point(page, 0.4)
    page.mouse("mouseMoved", x, y)
    page.frame()
    assert not page.run('document.getElementById("tip").hidden')
    live = number(page, "#tip", "live")
    assert live in {row["live_bytes"] for row in rows}, live
    assert "click" in text(page, "#tip")


def check_clicks(page, report):
    show(page, "#curve")
    x, y = curve_point(page, 0.02)
    page.click(x, y)
    early = number(page, "#instant-title")
    page.key("p")
    peak = number(page, "#instant-title")
    assert peak != early and peak >= report["devices"][0]["peak"]["allocated_bytes"]
    rows = page.run('[...document.querySelectorAll("#table tbody tr")].map((row) => Number(row.dataset.bytes))')
    assert sum(rows) == peak and rows == sorted(rows, reverse=True), rows
    assert page.run('document.querySelectorAll("#flame div").length') > len(rows)
    page.run('document.querySelector("#findings li:first-child button").click()')
    page.frame()
    assert "out of memory" in text(page, "#instant-title")
    assert "segments" in text(page, "#segments-note")
    told = page.run('[...document.querySelectorAll("#findings button")].map((one) => one.textContent)')
    reserved = [i for i, line in enumerate(told) if line.startswith("Peak") and " reserved at " in line]
    for i in reserved:
        page.run(f'document.querySelectorAll("#findings button")[{i}].click()')
        page.frame()
        assert "most reserved" in text(page, "#instant-title")
        assert "segments" in text(page, "#segments-note") and "carried" not in text(page, "#segments-note")
    assert len(reserved) == 1, told
    page.key("e")
    assert "end" in text(page, "#instant-title")
    page.key("[")
    assert "end" not in text(page, "#instant-title")


def check_zoom(page):
    show(page, "#curve")
    before = text(page, "#visible")
    x, y = curve_point(page, 0.5)
    for _ in range(4):
        page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-240)
    page.frame()
    assert text(page, "#visible") != before
    zoomed = text(page, "#visible")
    page.mouse("mousePressed", x, y, button="left", clickCount=1)
    page.mouse("mouseMoved", x - 150, y, button="left", buttons=1)
    page.mouse("mouseReleased", x - 150, y, button="left", clickCount=1)
    page.frame()
    assert text(page, "#visible") != zoomed
    page.key("0")
    assert text(page, "#visible") == before, (before, zoomed, text(page, "#visible"))


def check_search(page):
    page.key("p")
    every = page.run('document.querySelectorAll("#table tbody tr").length')
    page.run('const field = document.getElementById("search"); field.value = "embed"; field.dispatchEvent(new Event("input"))')
    page.frame()
    found = page.run('document.querySelectorAll("#table tbody tr").length')
    assert 0 < found < every, (found, every)
    assert number(page, "#matched") > 0 and page.run('document.querySelectorAll("#flame .match").length') > 0
    page.key("Escape")
    assert page.run('document.querySelectorAll("#table tbody tr").length') == every


def top_of(page, selector):
    return page.run(f'document.querySelector("{selector}").getBoundingClientRect().top')


def check_layout(page):
    """The header is one line, and each key stands beside what it does."""
    assert abs(top_of(page, "#help") - top_of(page, "#theme")) < 3
    page.key("?")
    for row in range(1, page.run('document.querySelectorAll("#help-text dt").length') + 1):
        assert abs(top_of(page, f"#help-text dt:nth-of-type({row})")
                   - top_of(page, f"#help-text dd:nth-of-type({row})")) < 3, row
    page.run('document.getElementById("help-text").close()')


def check_theme_and_paper(page, folder):
    back = 'getComputedStyle(document.body).backgroundColor'
    light = page.run(back)
    page.key("t")
    assert page.run(back) != light
    page.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
    page.run('document.documentElement.dataset.theme === "dark" || document.getElementById("theme").click()')
    page.ask("Emulation.setEmulatedMedia", media="print")
    assert page.run('getComputedStyle(document.getElementById("device")).display') != "none"
    page.ask("Emulation.setEmulatedMedia", media="")
    paper = page.ask("Page.printToPDF", printBackground=True)
    assert len(paper["data"]) > 10_000
    (folder / "paper.pdf").write_bytes(base64.b64decode(paper["data"]))
    page.run('document.documentElement.dataset.theme === "light" || document.getElementById("theme").click()')


TRAINING = """
meta process {"pid":5,"exe":"/opt/python3.11"}
meta clock {"start":{"monotonic_ns":1000000000}}
meta hooks {"nvml":"ok"}
meta end {"ended":"exit","exit_code":1,"complete":true}
device 0 12G Test GPU 12 GB
code 1 8 Block.forward | /home/u/run/model.py
code 2 40 step | /home/u/run/train.py
code 3 20 embed | /home/u/run/embed.py
stack 1 /v/libc10_cuda.so+0x100 py:1:12 py:2:44
stack 2 /v/libc10_cuda.so+0x100 py:2:45
stack 3 /v/libc10_cuda.so+0x100 py:3:22 py:2:43
context_retain label=cudaMalloc call=cuDevicePrimaryCtxRetain ctx=0x77 free=11G flags=free_sampled module=/v/libc10_cuda.so
alloc label=cudaMalloc call=cuMemAlloc_v2 addr=0x700000000 size=9G module=/v/libc10_cuda.so free=2G flags=free_sampled
"""


def training():
    """Some steps of blocks, then a request that does not fit."""
    lines, live, allocated = [TRAINING.strip()], [], 0
    for step in range(60):
        for block in range(8):
            size = (16 + 4 * (block % 3)) << 20
            address = 0x700000000 + (64 << 20) * len(live)
            live.append((address, size))
            allocated += size
            lines.append(f"fw_alloc addr={hex(address)} size={size} x0={allocated} x1=9G stack={1 + block % 3} module=/v/libc10_cuda.so")
        for _ in range(7 if step % 5 else 6):
            address, size = live.pop()
            allocated -= size
            lines.append(f"fw_free addr={hex(address)} size={size} x0={allocated} x1=9G stack=0 module=/v/libc10_cuda.so")
    lines.append("alloc label=cudaMalloc call=cuMemAlloc_v2 size=8G res=2 module=/v/libc10_cuda.so free=2G flags=free_sampled stack=3")
    lines.append(f"fw_oom size=8G x0={allocated} x1=9G module=/v/libc10_cuda.so stack=3")
    return "\n".join(lines + ["process_end dev=-1 handle=1 size=1"]) + "\n"


def everyday(here, page, shots):
    trace = here.trace("training", training())
    out = here.folder / "training.html"
    here.run("export", "-f", "html", "-o", out, trace)
    report = here.json("report", "--json", trace)
    page.open(out)
    page.frame()
    check_values(page, report)
    check_hover(page, here.json("timeline", "--json", trace)["rows"])
    check_clicks(page, report)
    check_zoom(page)
    check_search(page)
    check_layout(page)
    check_theme_and_paper(page, shots or here.folder)
    assert page.errors == [], page.errors
    assert [one for one in page.requests if not one.startswith("file:")] == [], page.requests


def every_trace(here, page):
    """No page of any trace, an empty one included, stops its script."""
    traces = here.traces() + [here.trace("hostile", test_html.HOSTILE_TRACE)]
    for trace in traces:
        out = here.folder / (trace.stem + ".html")
        here.run("export", "-f", "html", "-o", out, trace)
        page.open(out)
        assert page.errors == [], (trace, page.errors)
        assert text(page, "#left-out") and trace.stem in page.run("document.title")


def ten_million(here, page, program):
    trace, out = here.folder / "long.vscope", here.folder / "long.html"
    subprocess.run([program, "10000000", trace], check=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    here.run("export", "-f", "html", "-o", out, trace)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    page.open(out)
    gaps = sorted(page.run(ZOOM_FRAMES))
    print(f"10 M events: {out.stat().st_size:,} bytes, {spent:.1f} s of processor time; frames while "
          f"zooming: median {gaps[len(gaps) // 2]:.1f} ms, 95 % under {gaps[len(gaps) * 95 // 100]:.1f} ms")
    assert out.stat().st_size < MOST_BYTES
    assert spent < MOST_CPU_S, spent
    assert gaps[len(gaps) * 95 // 100] < MOST_FRAME_MS, gaps
    assert page.errors == [], page.errors


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vramscope", required=True, type=os.path.abspath)
    parser.add_argument("--mktrace", required=True, type=os.path.abspath)
    parser.add_argument("--long", type=os.path.abspath)
    parser.add_argument("--shots", type=pathlib.Path)
    arguments = parser.parse_args()
    program = chromium.find()
    if program is None:
        print("Chromium is missing: apt-get install chromium")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="vramscope-html-") as name:
        here = lab.Lab(arguments, pathlib.Path(name))
        page = chromium.Page(program)
        try:
            if arguments.long:
                ten_million(here, page, arguments.long)
            else:
                everyday(here, page, arguments.shots)
                every_trace(here, page)
        finally:
            page.close()


if __name__ == "__main__":
    main()
