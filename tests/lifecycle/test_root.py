# SPDX-License-Identifier: Apache-2.0
"""An older Debian (glibc 2.31) in a folder of its own: the shim built here loads
there, the project builds there, and the constructor test holds there."""

import os
import shutil
import subprocess

from lab import ROOT, SHIM, Skip, check, equal, need, say

RELEASE = "bullseye"
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "vramscope")
PACKAGES = ("gcc,g++,libc6-dev,cmake,ninja-build,python3,libzstd-dev,libxxhash-dev,"
            "libjansson-dev,zlib1g-dev,libsqlite3-dev,libdw-dev,libelf-dev,libiberty-dev,libcriterion-dev,procps,binutils,"
            "util-linux,ca-certificates")


def sources_mirror():
    """The mirror this system's own package sources name."""
    text = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI)"],
                          capture_output=True, text=True).stdout
    for uri in text.split():
        if "security" not in uri and "debian" in uri.lower():
            return uri
    raise Skip("this system has no Debian package source")


def make_root():
    if os.geteuid() != 0:
        raise Skip("needs root to make another Debian's root")
    root = os.path.join(CACHE, RELEASE)
    whole = os.path.join(root, ".whole")
    if os.path.exists(whole):
        with open(whole, encoding="ascii") as file:
            if file.read() == PACKAGES:
                return root
    need("debootstrap")
    shutil.rmtree(root, ignore_errors=True)
    os.makedirs(CACHE, exist_ok=True)
    made = subprocess.run(["debootstrap", "--variant=minbase", f"--include={PACKAGES}", RELEASE, root,
                           sources_mirror()], capture_output=True, text=True)
    if made.returncode != 0:
        raise Skip(f"debootstrap: {made.stdout[-500:]}{made.stderr[-500:]}")
    with open(whole, "w", encoding="ascii") as file:
        file.write(PACKAGES)
    return root


def inside(root, script, binds):
    """Runs a shell script in the root, in a mount namespace of its own."""
    steps = ["set -e", "mount --make-rprivate /", f"mount -t proc proc {root}/proc",
             f"mount --rbind /dev {root}/dev"]
    for source, target in binds.items():
        steps += [f"mkdir -p {root}{target}", f"mount --bind {source} {root}{target}"]
    steps.append(f"exec chroot {root} /bin/bash -c '{script}'")
    done = subprocess.run([need("unshare"), "--mount", "--pid", "--fork", "sh", "-c",
                           "; ".join(steps)], capture_output=True, text=True, timeout=3500)
    return done


def test_old_debian(lab):
    root = make_root()
    include = "/usr/local/cuda/include"
    binds = {ROOT: "/vramscope", os.path.dirname(SHIM): "/newer"}
    if os.path.isdir(include):
        binds[os.path.realpath(include)] = include
    build = ("cmake -S /vramscope -B /build -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo "
             "-DVS_CUDA_INCLUDE=/usr/local/cuda/include >/build.log 2>&1 && "
             "cmake --build /build -j 2 >>/build.log 2>&1 || { tail -n 30 /build.log; exit 9; }")
    done = inside(root, build, binds)
    equal(f"build in {RELEASE}: {done.stdout}", done.returncode, 0)
    # The shim that was built on the newer system, with the older one's everything else.
    script = ("export LD_PRELOAD=/newer/libvramscope.so; /bin/true && ls / >/dev/null && "
              "unset LD_PRELOAD; "
              "cp /newer/libvramscope.so /build/lib/libvramscope.so; cd /vramscope/tests/lifecycle; "
              "export VS_TEST_BUILD=/build; "
              "python3 run.py ends_preloaded loader_dlsym behaviour_idle behaviour_cuda; "
              f"VS_TEST_SLOW=1 python3 run.py loader_constructor")
    done = inside(root, script, binds)
    say(done.stdout)
    check(done.returncode == 0, f"{RELEASE}: {done.stdout}\n{done.stderr}")
