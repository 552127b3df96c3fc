#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The lines of `vramscope env`: shells and Python are run, YAML is read, what is in LD_PRELOAD stays in
order, and every setting of the shim goes along: env.py --vramscope PROGRAM. That programs started so are
recorded: env_start.py."""

import argparse
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HARMLESS = "/lib/nowhere/a.so"
faults = []


def equal(what, got, wanted):
    if got != wanted:
        faults.append(f"{what}: got {got!r}, wanted {wanted!r}")


def settings():
    """What the shim reads, but for where the output and the collector are."""
    with open(os.path.join(ROOT, "shim", "config.c"), encoding="utf-8") as file:
        table = file.read().split("variables[] = {", 1)[1].split("};", 1)[0]
    return {"VRAMSCOPE_" + name for name in re.findall(r'^\s*\{"([A-Z_]+)"', table, re.M)
            if name not in ("OUTPUT", "COLLECTOR")}


def lines(program, folder, *options, **extra):
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", **extra}
    done = subprocess.run([program, "env", *options], cwd=folder, env=environment, capture_output=True,
                          text=True, timeout=60, check=False)
    equal(f"env {options}", (done.returncode, done.stderr), (0, ""))
    return done.stdout


def variables_after(script, **before):
    """A shell's variables after these lines; nothing is preloaded into the shell's own children."""
    text = script + '\nkept=$LD_PRELOAD; unset LD_PRELOAD; printf "LD_PRELOAD=%s\\n" "$kept"; env'
    done = subprocess.run(["sh", "-ec", text], env={"PATH": os.environ["PATH"], **before}, text=True,
                          capture_output=True, timeout=60, check=True)
    return dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)


def check_shells(program, shim, folder):
    given = {name: f"it's {name}" for name in settings()}
    for options in ([], ["--torchrun"], ["--slurm"]):
        found = variables_after(lines(program, folder, *options, **given))
        for name, value in given.items():
            equal(f"{options} {name}", found.get(name), value)
        equal(f"{options} output", found["VRAMSCOPE_OUTPUT"], f"{folder}/vramscope-traces/")
        equal(f"{options} preload", found["LD_PRELOAD"], shim)
    text = lines(program, folder, "-o", "a b/%e.%p.vscope").replace("export LD_PRELOAD",
                                                                    f"LD_PRELOAD={HARMLESS}:b.so\nexport LD_PRELOAD")
    found = variables_after(text)
    equal("order", found["LD_PRELOAD"], f"{shim}:{HARMLESS}:b.so")
    equal("pattern", found["VRAMSCOPE_OUTPUT"], f"{folder}/a b/%e.%p.vscope")
    equal("folder made", os.path.isdir(os.path.join(folder, "a b")), True)


def check_apptainer(program, folder):
    text = lines(program, folder, "--apptainer", "-o", "t/", VRAMSCOPE_DEPTH="9")
    found = variables_after(text, APPTAINER_BIND="/x:/y", APPTAINERENV_LD_PRELOAD="inside.so")
    binds = found["APPTAINER_BIND"].split(",")
    equal("first bind", binds[0], "/x:/y")
    equal("last bind", binds[-1], f"{folder}/t:/vramscope-traces")
    for bind in binds[1:]:
        equal(f"{bind} is there", os.path.exists(bind.split(":")[0]), True)
    equal("preload", found["APPTAINERENV_LD_PRELOAD"], "/opt/vramscope/lib/libvramscope.so:inside.so")
    equal("depth", found["APPTAINERENV_VRAMSCOPE_DEPTH"], "9")
    equal("output", found["APPTAINERENV_VRAMSCOPE_OUTPUT"], "/vramscope-traces/")


def check_ray(program, shim, folder):
    text = lines(program, folder, "--ray", VRAMSCOPE_ONLY='"a\\b"').replace("import ray\n", "")
    for before, wanted in (({}, shim), ({"LD_PRELOAD": HARMLESS}, f"{shim}:{HARMLESS}")):
        seen = {}
        ray = type("ray", (), {"init": staticmethod(seen.update)})
        kept = os.environ.pop("LD_PRELOAD", None)
        os.environ.update(before)
        exec(text, {"ray": ray})  # pylint: disable=exec-used
        os.environ.pop("LD_PRELOAD", None)
        if kept is not None:
            os.environ["LD_PRELOAD"] = kept
        equal("ray", seen["runtime_env"]["env_vars"],
              {"LD_PRELOAD": wanted, "VRAMSCOPE_ONLY": '"a\\b"', "VRAMSCOPE_OUTPUT": f"{folder}/vramscope-traces/"})


def check_docker(program, folder):
    text = "docker() { printf '%s\\n' \"$@\"; }\n" + lines(program, folder, "--docker", VRAMSCOPE_ONLY="a b")
    done = subprocess.run(["sh", "-ec", text], capture_output=True, text=True, timeout=60, check=True)
    words = done.stdout.splitlines()
    equal("docker's command", words[-7:], ["IMAGE", "/opt/vramscope/bin/vramscope", "run", "-o",
                                           "/vramscope-traces/", "--", "COMMAND"])
    equal("docker's variable", "VRAMSCOPE_ONLY=a b" in words, True)
    equal("docker's folder", f"{folder}/vramscope-traces:/vramscope-traces" in words, True)


def check_k8s(program, folder):
    text = lines(program, folder, "--k8s", VRAMSCOPE_DEPTH="9")
    found = dict(re.findall(r'- name: (\S+)\n +value: "([^"]*)"', text))
    equal("k8s", found, {"LD_PRELOAD": "/opt/vramscope/lib/libvramscope.so", "VRAMSCOPE_DEPTH": "9",
                         "VRAMSCOPE_OUTPUT": "/vramscope-traces/"})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vramscope", required=True)
    program = os.path.realpath(parser.parse_args().vramscope)
    shim = os.path.join(os.path.dirname(os.path.dirname(program)), "lib", "libvramscope.so")
    with tempfile.TemporaryDirectory(prefix="vramscope-env-") as name:
        folder = os.path.realpath(name)
        check_shells(program, shim, folder)
        check_apptainer(program, folder)
        check_ray(program, shim, folder)
        check_docker(program, folder)
        check_k8s(program, folder)
    for fault in faults:
        print(fault)
    print(f"{len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
