#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of every fenced block in README.md and docs/*.md, and compares what the page shows of
their output. What a block needs stands before it, in comments that no reader of the page sees:

  <!-- before: COMMAND -->        run first, e.g. what records the trace; once per page
  <!-- before (torch): COMMAND --> the same with real PyTorch: the block belongs to that tier
  <!-- shows: COMMAND -->         the block is that command's output
  <!-- status: N -->              the exit status of the block's last command, 0 unless said
  <!-- varies: WHAT … -->         besides the output, WHAT of VARIES is not compared
  <!-- not run: REASON -->        nothing of the block is run
  <!-- not run (COMMAND): REASON --> that line is not run
  <!-- text: WHAT -->             no command and no output

In a block "$ " begins a command, its output follows; a block without "$ " is all commands. A line of output
that is only "…" stands for any lines. Code between the lines of text (`vramscope report x.vscope`) is run
after a page's blocks if all its words are real. A command that is neither run nor excused is a fault.

docs_run.py --vramscope PROGRAM --mktrace PROGRAM [--torch] [--update] [PAGE …]
--torch runs only the blocks of real PyTorch (VRAMSCOPE_TORCH_PYTHON). --update writes what is printed now into the pages."""
import argparse
import difflib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SKIPPED = 77
SHELL_WORDS = ("vramscope", "scripts/", "build/", "cmake", "ninja", "torchrun", "eval", "python", "pip", "export")
MARK = "\x01"  # no white space, unlike the separators beyond it

# What differs from run to run, and so is replaced on both sides before they are compared. The first
# group holds wherever a program was recorded just now, the others where a block asks for them.
VARIES = {
    "live": [
        (r"\b\d+(\.\d+)? (ns|us|ms|s|min|h)\b", "TIME"),
        (r"\bpid \d+", "pid N"),
        (r"\bon [\w.-]+, TIME", "on HOST, TIME"),
        (r"\bpython3\.\d+", "python3"),
    ],
    "sizes": [(r"\b\d+(\.\d+)? ([KMG]i)?B\b", "SIZE")],
}
COMMENT = re.compile(r"\s*<!-- ([a-z ]+)(?: \(([^)]*)\))?: (.*) -->\s*$")

faults = []


class Block:
    """One fenced block: its lines, where they are on the page, and what was said before it."""

    def __init__(self, page, first, lines, notes):
        self.page, self.first, self.notes = page, first, notes
        self.lines = lines
        self.tier = "torch" if any(kind == "before" and of == "torch" for kind, of, _ in notes) else "normal"

    def said(self, kind):
        return [value for name, of, value in self.notes if name == kind and (kind == "before" or not of)]

    def excused(self, command):
        return any(name == "not run" and (not of or command.startswith(of)) for name, of, _ in self.notes)

    def idle(self):
        return bool(self.said("text") or self.said("not run"))

    def steps(self):
        """[(command, output shown or None, its range in lines)]"""
        if self.idle():
            return []
        if self.said("shows"):
            return [(self.said("shows")[0], self.lines, (0, len(self.lines)))]
        if any(line.startswith("$ ") for line in self.lines):
            starts = [n for n, line in enumerate(self.lines) if line.startswith("$ ")] + [len(self.lines)]
            return [(self.lines[a][2:], self.lines[a + 1:b], (a + 1, b)) for a, b in zip(starts, starts[1:])]
        text = re.sub(r"\\\n\s*", "", "\n".join(self.lines))
        commands = [re.sub(r"\s+#.*$", "", line) for line in text.splitlines() if line.strip()]
        return [(command, None, None) for command in commands]

    def __str__(self):
        return f"{self.page.relative_to(ROOT)}:{self.first}"


def blocks_of(page):
    blocks, notes, lines, fence = [], [], None, None
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if lines is not None:
            if line.strip() == "```":
                blocks.append(Block(page, fence[0], lines, notes))
                notes, lines = [], None
            else:
                lines.append(line.removeprefix(fence[1]))
        elif line.lstrip().startswith("```"):
            lines, fence = [], (number + 1, line[:len(line) - len(line.lstrip())])
        elif comment := COMMENT.match(line):
            notes.append((comment[1], comment[2], comment[3]))
        elif line.strip():
            notes = []
    return blocks


def inline_commands(page):
    """Code in the text that can be typed as it stands: it names a file, and has no placeholder."""
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for span in re.findall(r"`([^`]+)`", text):
        command = span.replace("\n", " ")
        if re.match(r"vramscope [a-z]+ .*\.(vscope|zip|txt|py)\b", command) and not re.search(r"\b[A-Z]{2,}\b|…|\\\|", command):
            yield command


def normalised(lines, varies):
    """One line of words; a line that stands for left-out lines stays a mark of its own."""
    text = "\n".join(MARK if line.strip() == "…" else line for line in lines)
    for pattern, replacement in (pair for group in varies for pair in VARIES[group]):
        text = re.sub(pattern, replacement, text)
    return " ".join(text.split())


def equal(shown, got, varies):
    if not varies:
        parts = [r"(?:.*\n)*" if line.strip() == "…" else re.escape(line) + r"\n" for line in shown]
        return re.fullmatch("".join(parts), "".join(f"{line}\n" for line in got)) is not None
    wanted = re.escape(normalised(shown, varies)).replace(r"\ ", " ")
    wanted = re.sub(f" ?{MARK} ?", "(?: .*|.* )?", wanted)
    return re.fullmatch(wanted, normalised(got, varies)) is not None


def rewritten(shown, got):
    """What is printed now, with the same parts left out: each part begins and ends at its most alike lines."""
    if not any(line.strip() == "…" for line in shown):
        return got
    result, place, part = [], 0, []

    def alike(line, start):
        near = difflib.get_close_matches(line, got[start:], n=1, cutoff=0.3)
        return got.index(near[0], start) if near else start

    for line in shown + (["…"] if shown[-1].strip() != "…" else []):
        if line.strip() != "…":
            part.append(line)
            continue
        if part:
            start = alike(part[0], place) if result else place
            place = max(start, alike(part[-1], start)) + 1
            result += got[start:place]
        result.append(line)
        part = []
    return result if shown[-1].strip() == "…" else result[:-1]


def make_traces(mktrace, folder):
    for script in sorted((HERE / "traces").rglob("*.txt")):
        out = folder / script.relative_to(HERE / "traces").with_suffix(".vscope")
        out.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([mktrace, script, out], check=True, timeout=60)


class World:
    """A folder in which a page's commands find what they name: the traces of tests/cli/traces, a train.py, a
    pasted message, and this tree's scripts and programs where they would be after a build."""

    def __init__(self, arguments, folder, traces):
        self.arguments, self.folder = arguments, folder
        self.ran = set()
        binaries = arguments.vramscope.parent
        (folder / "build/release").mkdir(parents=True)
        (folder / "build/release/bin").symlink_to(binaries)
        (folder / "bin").mkdir()
        (folder / "bin/vramscope").symlink_to(arguments.vramscope)
        (folder / "bin/python").write_text(f'#!/bin/sh\nexec {arguments.torch or sys.executable} "$@"\n')
        (folder / "bin/python").chmod(0o755)
        for name in ("scripts", "tests"):
            (folder / name).symlink_to(ROOT / name)
        for name in ("shim", "docs"):
            shutil.copytree(ROOT / name, folder / name)
        shutil.copy(HERE / "docs_world/train.py", folder)
        shutil.copy(HERE / "docs_world/torchrun", folder / "bin")
        shutil.copy(HERE / "pastes/message_and_summary.txt", folder / "message.txt")
        shutil.copytree(traces, folder, dirs_exist_ok=True)

    def session(self, commands):
        """Runs them in one shell: [(exit status, lines printed)]."""
        text = "".join(f'{command}\nprintf "\\n{MARK}%d{MARK}\\n" $?\n' for command in commands)
        words = ["bash", "-c", text]
        if not self.arguments.torch:
            words = [ROOT / "scripts/simgpu", "--memory", "8G", "--", *words]
        path = f"{self.folder}/bin:/usr/local/bin:/usr/bin:/bin"
        # An id of its own: what a command leaves behind does not read from, or hold, our pipes for long.
        done = subprocess.run(words, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=300, check=False,
                              env={"PATH": path, "HOME": str(self.folder), "LC_ALL": "C.UTF-8", "TERM": "dumb",
                                   "OMP_NUM_THREADS": "1", "VRAMSCOPE_BUILD": str(self.arguments.vramscope.parents[1])})
        parts = re.split(f"\n{MARK}(\\d+){MARK}\n", done.stdout)
        return [(int(status), output.splitlines()) for output, status in zip(parts[::2], parts[1::2])]

    def prepare(self, block):
        for command in block.said("before"):
            if command not in self.ran:
                self.ran.add(command)
                (status, output), = self.session([command])
                # What a program that ran out of memory says is its own affair; that there is a trace is not.
                if status not in (0, 1) or (status and "Error" not in "\n".join(output)):
                    faults.append(f"{block}: before: {command}\n  exited with {status}:\n" + "\n".join(output))


def check_block(block, world, update):
    steps = [step for step in block.steps() if not block.excused(step[0])]
    for command, shown, _ in steps:
        if shown is None and not command.startswith(SHELL_WORDS):
            faults.append(f"{block}: not a command known here, and nothing says what it is: {command}")
            return 0
    world.prepare(block)
    results = world.session([command for command, _, _ in steps]) if steps else []
    if len(results) != len(steps):
        faults.append(f"{block}: the shell ended after {len(results)} of {len(steps)} commands")
    last = int((block.said("status") or ["0"])[0])
    varies = (["live"] if block.said("before") else []) + " ".join(block.said("varies")).split()
    for (command, shown, where), (status, got) in reversed(list(zip(steps, results))):
        if status != (last if command is steps[-1][0] else 0):
            faults.append(f"{block}: {command}\n  exited with {status}:\n" + "\n".join(got))
        elif shown is not None and not equal(shown, got, varies):
            if update:
                block.lines[where[0]:where[1]] = rewritten(shown, got)
            else:
                faults.append(f"{block}: {command}\n  prints now:\n" + "\n".join(got))
    return len(steps)


def check_page(page, arguments, make_world):
    tier = "torch" if arguments.torch else "normal"
    blocks = blocks_of(page)
    mine = [block for block in blocks if block.tier == tier and (block.said("before") or not block.idle())]
    commands = list(inline_commands(page)) if tier == "normal" else []
    if not mine and not commands:
        return 0
    world, ran = make_world(page), len(commands)
    for block in mine:
        length = len(block.lines)
        ran += check_block(block, world, arguments.update)
        if arguments.update:
            write_block(block, length, blocks)
    for command, (status, got) in zip(commands, world.session(commands) if commands else []):
        if status != 0:
            faults.append(f"{page.relative_to(ROOT)}: `{command}` exited with {status}:\n" + "\n".join(got))
    return ran


def write_block(block, length, blocks):
    lines = block.page.read_text(encoding="utf-8").splitlines()
    start = block.first - 1
    indent = lines[start - 1][:len(lines[start - 1]) - len(lines[start - 1].lstrip())]
    lines[start:start + length] = [indent + line for line in block.lines]
    block.page.write_text("\n".join(lines) + "\n", encoding="utf-8")
    for other in blocks:
        if other.first > block.first:
            other.first += len(block.lines) - length


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--vramscope", required=True, type=pathlib.Path)
    parser.add_argument("--mktrace", required=True, type=pathlib.Path)
    parser.add_argument("--torch", action="store_true", help="only what needs real PyTorch")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("pages", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.torch = arguments.torch and os.environ.get("VRAMSCOPE_TORCH_PYTHON", "")
    if arguments.torch == "":
        print("no PyTorch: set VRAMSCOPE_TORCH_PYTHON (scripts/torch-env prints it)")
        return SKIPPED
    arguments.vramscope, arguments.mktrace = arguments.vramscope.resolve(), arguments.mktrace.resolve()
    pages = [page.resolve() for page in arguments.pages] or [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    worlds = {}
    with tempfile.TemporaryDirectory(prefix="vramscope-docs-") as name:
        folder = pathlib.Path(name)
        make_traces(arguments.mktrace, folder / "traces")

        def make_world(page):
            """Recordings with PyTorch take long, so its pages share them."""
            key = "all" if arguments.torch else page.stem
            if key not in worlds:
                worlds[key] = World(arguments, folder / "pages" / key, folder / "traces")
            return worlds[key]

        ran = sum(check_page(page, arguments, make_world) for page in pages)
    for fault in faults:
        print(fault)
    print(f"{len(pages)} pages, {ran} commands, {len(faults)} faults")
    return 1 if faults or ran == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
