#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a shell completes is what the commands take: complete.py --vramscope PROGRAM. Options offered
are those of --help and are parsed, values offered are accepted; then the functions for bash, and for
zsh and fish where they are, are driven as the shells drive them."""

import argparse
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "completion"
# A command line up to where Tab is pressed, and what is offered. Files: the folder below.
FILES = ["a.vscope", "b c.vscope.gz", "pack.zip", "notes.txt", "folder/"]
TRACES = ["a.vscope", "b c.vscope.gz", "folder", "pack.zip"]
CASES = [
    (["ver"], ["verify"]),
    (["export", "-f", "p"], ["perfetto", "pprof", "pytorch"]),
    (["export", "--at", ""], ["end", "oom", "peak"]),
    (["report", "--by", "f"], ["function"]),
    (["report", "--by", "line", "--m"], ["--markdown", "--min-bytes"]),
    (["report", "--json", ""], TRACES),
    (["report", "a"], ["a.vscope"]),
    (["symbolize", "--debug-dir", ""], ["folder"]),
    (["help", "exp"], ["explain", "export"]),
    (["env", "--ap"], ["--apptainer"]),
    (["nonsense", ""], []),
]
BASH_CASES = CASES + [
    (["run", "--stacks", "=", "na"], ["native", "native,python"]),
    (["run", "--ring-at", "="], ["file", "memory"]),
    (["run", "--", "note"], ["notes.txt"]),
    (["redact", "-o", "no"], ["notes.txt"]),
]

faults = []


def complain(text):
    faults.append(text)


def ask(program, *words):
    done = subprocess.run([program, *words], capture_output=True, text=True, timeout=30,
                          stdin=subprocess.DEVNULL, check=False)
    return done


def offered(program, *words):
    lines = ask(program, "--complete", *words).stdout.splitlines()
    return [line.split("\t")[0] for line in lines]


def check_command(program, command):
    text = ask(program, command, "--help").stdout
    for line in text.splitlines():
        if len(line) > 100:
            complain(f"{command} --help: wider than 100 columns: {line}")
    told = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", re.sub(r"`[^`]*`", "", text))) | {"--help"}
    known = {word for word in offered(program, command, "--") if word != "--"}
    if told != known:
        complain(f"{command}: only in --help {sorted(told - known)}, only completed {sorted(known - told)}")
    for option in sorted(known - {"--help"}) + (["-f", "-o"] if command == "export" else []):
        check_option(program, command, option)


def check_option(program, command, option):
    alone = ask(program, command, option, "--nonsense").stderr
    if f"unknown option {option}" in alone:
        complain(f"{command}: {option} is completed and not taken")
    values = [word for word in offered(program, command, option, "") if not word.startswith(":")]
    if "unknown option --nonsense" in alone:  # no value goes with it
        return
    for value in values:
        # What follows is wrong, so that nothing is done.
        said = ask(program, command, option, value, "--nonsense").stderr
        if "unknown option --nonsense" not in said:
            complain(f"{command} {option} {value}: completed, and refused: {said}")
    said = ask(program, command, option, "no-such-value", "--nonsense").stderr
    if values and not said.startswith(f"vramscope {command}: {option} takes {values[0]}"):
        if "unknown option --nonsense" not in said:
            complain(f"{command} {option} no-such-value: {said}")


def check_commands(program):
    listed = re.findall(r"^  ([a-z]+) +\S", ask(program, "--help").stdout, re.M)
    if sorted(offered(program, "")) != sorted(listed + ["help"]):
        complain(f"commands: {offered(program, '')}, --help has {listed}")
    for command in listed:
        check_command(program, command)
        if ask(program, "help", command).stdout != ask(program, command, "--help").stdout:
            complain(f"`help {command}` differs from `{command} --help`")


# ---- shells ---------------------------------------------------------------------------------


def quote(words):
    return " ".join("'" + word.replace("'", "'\\''") + "'" for word in words)


def run_shell(command, script, folder, path):
    environment = {**os.environ, "PATH": path, "HOME": f"{folder}.home", "LC_ALL": "C.UTF-8", "TERM": "dumb"}
    done = subprocess.run([*command, script], cwd=folder, env=environment, capture_output=True, text=True,
                          timeout=60, stdin=subprocess.DEVNULL, check=False)
    if done.stderr:
        complain(f"{command[0]}: {done.stderr}")
    return done.stdout.split("==\n")[1:]


def compare(shell, cases, answers):
    if len(answers) != len(cases):
        complain(f"{shell}: {len(answers)} answers to {len(cases)} cases")
    for (words, wanted), answer in zip(cases, answers):
        got = sorted({line.split("\t")[0].rstrip("/") for line in answer.splitlines()})
        if got != wanted:
            complain(f"{shell}: {words}: {got}, not {wanted}")


def check_bash(folder, path):
    script = [f"source {SCRIPTS / 'vramscope.bash'}", "compopt() { :; }"]
    for words, _ in BASH_CASES:
        script += [f"COMP_WORDS=({quote(['vramscope', *words])})", f"COMP_CWORD={len(words)}",
                   "echo '=='; _vramscope; printf '%s\\n' \"${COMPREPLY[@]}\" | grep -v '^$' || true"]
    compare("bash", BASH_CASES, run_shell(["bash", "--norc", "-c"], "\n".join(script), folder, path))
    registered = run_shell(["bash", "--norc", "-c"],
                           f"source {SCRIPTS / 'vramscope.bash'}; echo ==; complete -p vramscope", folder, path)
    if registered != ["complete -F _vramscope vramscope\n"]:
        complain(f"bash: complete -p says {registered}")


def check_fish(folder, path):
    script = [f"source {SCRIPTS / 'vramscope.fish'}"]
    for words, _ in CASES:
        line = "vramscope " + " ".join(words)
        script.append(f"echo ==; complete --do-complete '{line}'")
    compare("fish", CASES, run_shell(["fish", "--no-config", "-c"], "\n".join(script), folder, path))


# What zsh would list goes to a file: every match passes through compadd.
ZSH_RECORDS = """
fpath=(FOLDER $fpath); autoload -Uz compinit; compinit -u -D
unsetopt auto_list beep; PS1= ; unset zle_bracketed_paste
compadd() {
    local -a hits
    builtin compadd "$@"
    local found=$?
    [[ " ${(j: :)@} " == *" -"[AOD]" "* ]] && return found
    builtin compadd -A hits "$@"
    print -rl -- $hits >> HITS
    return found
}
"""


class Zsh:
    """An interactive zsh at a terminal, as somebody types into it."""

    def __init__(self, folder, path):
        self.hits = pathlib.Path(f"{folder}.hits")
        self.hits.touch()
        records = ZSH_RECORDS.replace("FOLDER", str(SCRIPTS)).replace("HITS", str(self.hits))
        start = pathlib.Path(f"{folder}.zsh")
        start.write_text(records)
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            os.chdir(folder)
            os.execvpe("zsh", ["zsh", "-f", "-i"], {"PATH": path, "HOME": folder, "TERM": "dumb", "LC_ALL": "C.UTF-8"})
        self.run(f"source {start}")

    def read(self, seconds):
        while select.select([self.terminal], [], [], seconds)[0]:
            try:
                if not os.read(self.terminal, 1 << 16):
                    return
            except OSError:
                return

    def run(self, command):
        """Until it is done: what is typed into a running command is not for the line editor."""
        mark = f"=={time.monotonic_ns()}"
        os.write(self.terminal, f"{command}; print -r -- '{mark}' >> '{self.hits}'\r".encode())
        end = time.monotonic() + 30
        while mark not in self.hits.read_text() and time.monotonic() < end:
            self.read(0.02)
        self.read(0.05)
        return mark

    def complete(self, line):
        os.write(self.terminal, line.encode() + b"\t\x15")
        mark = self.run("true")
        found = self.hits.read_text().split(mark)[0]
        return found.split("==")[-1].partition("\n")[2].replace("\\", "")

    def close(self):
        os.write(self.terminal, b"exit\r")
        self.read(0.2)
        os.close(self.terminal)
        os.waitpid(self.process, 0)


def check_zsh(folder, path):
    zsh = Zsh(folder, path)
    lines = ["vramscope " + quote(words[:-1]) + " " + words[-1] for words, _ in CASES]
    compare("zsh", CASES, [zsh.complete(line) for line in lines])
    zsh.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vramscope", required=True)
    program = os.path.abspath(parser.parse_args().vramscope)
    check_commands(program)
    with tempfile.TemporaryDirectory(prefix="vramscope-complete-") as top:
        folder = os.path.join(top, "traces")
        os.mkdir(folder)
        for name in FILES:
            path = pathlib.Path(folder, name)
            path.mkdir() if name.endswith("/") else path.touch()
        path = os.path.dirname(program) + os.pathsep + os.environ["PATH"]
        check_bash(folder, path)
        for shell, check in (("fish", check_fish), ("zsh", check_zsh)):
            if shutil.which(shell):
                check(folder, path)
            else:
                print(f"{shell} is not here: its completion was not tried")
    for fault in faults:
        print(fault)
    print(f"{len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
