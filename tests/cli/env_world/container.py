# SPDX-License-Identifier: Apache-2.0
"""A container as far as the lines of `vramscope env` can tell: a root of its own with the host's folders in it
(but an empty /opt), the mounts asked for, and only the variables given. Needs namespaces of the user's own."""
import os
import shlex
import subprocess


def supported():
    done = subprocess.run(["unshare", "-Urm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, check=False)
    return done.returncode == 0


def script(mounts, command):
    lines = ["set -e", "root=$(mktemp -d)", "mount -t tmpfs tmpfs $root"]
    for name in sorted(os.listdir("/")):
        path = f"/{name}"
        if os.path.islink(path):
            lines.append(f"ln -s {shlex.quote(os.readlink(path))} $root{path}")
        elif os.path.isdir(path):
            lines.append(f"mkdir $root{path}")
            if name != "opt":
                lines.append(f"mount --rbind {path} $root{path}")
    for source, target, options in mounts:
        source, inside = shlex.quote(source), f"$root{shlex.quote(target)}"
        if os.path.isdir(shlex.split(source)[0]):
            lines.append(f"mkdir -p {inside}")
        else:
            lines.append(f'mkdir -p "$(dirname {inside})"; : >{inside}')
        lines.append(f"mount --bind {source} {inside}")
        if "ro" in options:
            lines.append(f"mount -o remount,ro,bind {inside}")
    return "\n".join(lines) + f'\nexec "$@" chroot $root sh -c {shlex.quote("cd /tmp; exec " + shlex.join(command))}\n'


def run(mounts, variables, command):
    """Exit status of `command`; `mounts` are (source, target, options)."""
    for source, _, _ in mounts:
        if not os.path.exists(source):
            raise SystemExit(f"container: {source} is not there to be mounted")
    # env, and what the container's variables preload into it, start inside: the set-up is not traced.
    inside = ["env", "-i", *(f"{name}={value}" for name, value in variables.items())]
    clean = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    return subprocess.run(["unshare", "-Urm", "sh", "-c", script(mounts, [*inside, *command]), "sh"],
                          env=clean, timeout=60, check=False).returncode


def of_image():
    """The variables an image brings: what a program needs for the simulated device, LD_PRELOAD among it."""
    return {name: value for name, value in os.environ.items()
            if name in ("PATH", "IMAGE_PRELOAD") or name.startswith("SIMGPU_")}
