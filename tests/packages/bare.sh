#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the packages and tries each on a bare older Debian (bullseye, glibc 2.31, nothing of ours
# installed): bare.sh TRACE. What is installed there is gone afterwards. Exit status 77: no root here.
set -euo pipefail
trace=$(realpath "$1")
cd "$(dirname "$0")/../.."
. scripts/packaging/roots.sh
[ "$(id -u)" -eq 0 ] && command -v debootstrap >/dev/null || { echo "needs root and debootstrap"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf --one-file-system "$folder"' EXIT
[ -n "${VS_PACKAGES:-}" ] || { VS_PACKAGES=$PWD/build/package; scripts/package; }
root=$(make_root package-bare bullseye python3,python3-venv,procps,man-db,bash-completion)
cp "$trace" "$folder/trace.vscope"
cp "$VS_PACKAGES"/*.deb "$VS_PACKAGES"/*.tar.gz "$VS_PACKAGES"/*.whl "$folder"
cp -a --one-file-system "$root" "$folder/root"

# Another reader of what the wheel needs (PyPI: auditwheel): glibc alone, and no newer one than its tag
# says. auditwheel knows some of the tags only, and names the next one that it knows.
if python3 -m venv "$folder/audit" && "$folder/audit/bin/pip" install --quiet --disable-pip-version-check auditwheel; then
    wheel=$(ls "$folder"/*.whl) tag=${wheel##*manylinux_}
    "$folder/audit/bin/auditwheel" show "$wheel" | tr -s '[:space:]' ' ' >"$folder/audit/said"
    newest=$(grep -o 'GLIBC_[0-9.]*' "$folder/audit/said" | sed 's/GLIBC_//' | sort -V | tail -n 1)
    grep -q 'is consistent with the following platform tag: "manylinux_' "$folder/audit/said" &&
        [ "${tag%_"$(uname -m)".whl}" = "${newest/./_}" ] ||
        { echo "${wheel##*/}; auditwheel:"; cat "$folder/audit/said"; exit 1; }
    echo "ok: auditwheel finds glibc $newest needed"
else
    echo "not tried: auditwheel cannot be had from PyPI"
fi

in_root "$folder/root" '
set -eu
completes() { # what it is called, its vramscope, how its completion gets into a shell
    bash --norc -c "$3
        complete -p vramscope >/dev/null || exit 1
        COMP_WORDS=($2 ti) COMP_CWORD=1
        _vramscope 2>/dev/null
        [ \"\${COMPREPLY[*]}\" = timeline ]"
    echo "ok: completion of the $1"
}
try() { # what it is called, its vramscope
    what=$1; shift
    "$@" --version
    "$@" report /packages/trace.vscope >/tmp/page
    grep -q "^GPU 0 " /tmp/page
    "$@" verify /packages/trace.vscope >/dev/null
    VRAMSCOPE_LOG=error "$@" run -- ldd --version | grep -q "2\.31"
    "$@" run -- cat /proc/self/maps 2>/dev/null | grep -q libvramscope.so
    echo "ok: $what"
}
python3 -m venv /venv
/venv/bin/pip install --no-index --quiet /packages/*.whl
try "wheel, command" /venv/bin/vramscope
try "wheel, module" /venv/bin/python -m vramscope
completes wheel /venv/bin/vramscope ". /venv/share/bash-completion/completions/vramscope"
/venv/bin/python -c "import vramscope; vramscope.mark(\"x\"); assert vramscope.peak() is None"
mkdir /opt/first
tar -xzf /packages/*.tar.gz -C /opt/first --strip-components 1
mv /opt/first /opt/moved
try "tar.gz, moved" /opt/moved/bin/vramscope
completes "tar.gz" /opt/moved/bin/vramscope ". /opt/moved/share/bash-completion/completions/vramscope"
dpkg -i /packages/*.deb >/dev/null
try "deb" vramscope
man -w vramscope-run >/dev/null
completes deb vramscope ". /usr/share/bash-completion/bash_completion; __load_completion vramscope"
for name in vramscope vramscope-collector vramscope-symbolizer; do
    if ldd /usr/bin/$name | grep "not found"; then exit 1; fi
done
dpkg -r vramscope >/dev/null
test ! -e /usr/bin/vramscope
test ! -e /usr/lib/libvramscope.so
echo "ok: nothing of the deb stays"' "$folder:/packages:ro"
