# SPDX-License-Identifier: Apache-2.0
# Sourced by bash scripts: folders that hold another, older Debian, and running commands in
# them. Both need root; making one needs debootstrap and this system's own package mirror.

# make_root NAME RELEASE PACKAGES: prints the folder of a root with these packages, made once.
make_root() {
    local name=$1 release=$2 packages=$3 root mirror
    root=${VRAMSCOPE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/vramscope}/$name
    [ "$(cat "$root/.whole" 2>/dev/null)" = "$release $packages" ] && { echo "$root"; return 0; }
    [ "$(id -u)" -eq 0 ] || { echo "${0##*/}: making another Debian's root needs root" >&2; return 1; }
    command -v debootstrap >/dev/null ||
        { echo "${0##*/}: debootstrap is missing: scripts/install-deps --slow" >&2; return 1; }
    mirror=$(apt-get indextargets --format '$(REPO_URI)' | grep -i debian | grep -v security | head -n 1)
    [ -n "$mirror" ] || { echo "${0##*/}: this system has no Debian package source" >&2; return 1; }
    mkdir -p "$(dirname "$root")"
    (
        flock 9
        [ "$(cat "$root/.whole" 2>/dev/null)" != "$release $packages" ] || exit 0
        echo "${0##*/}: making a $release root in $root (once)" >&2
        rm -rf --one-file-system "$root"
        debootstrap --variant=minbase --include="$packages" "$release" "$root" "$mirror" >"$root.log" 2>&1 ||
            { tail -n 10 "$root.log" >&2; exit 1; }
        echo "$release $packages" >"$root/.whole"
    ) 9>"$root.lock" || return 1
    echo "$root"
}

# in_root ROOT SCRIPT [SOURCE:TARGET[:ro] …]: a shell script in the root, in a mount namespace of
# its own, with /proc, /dev and these folders bound.
in_root() {
    local root=$1 script=$2 steps bind source target mode
    shift 2
    steps="set -e; mount --make-rprivate /; mount -t proc proc '$root/proc'; mount --rbind /dev '$root/dev'"
    for bind in "$@"; do
        IFS=: read -r source target mode <<<"$bind"
        steps+="; mkdir -p '$root$target'; mount --bind '$source' '$root$target'"
        [ "$mode" != ro ] || steps+="; mount -o remount,bind,ro '$root$target'"
    done
    VS_IN_ROOT=$script unshare --mount --pid --fork sh -c \
        "$steps; exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 chroot '$root' /bin/bash -c \"\$VS_IN_ROOT\""
}
