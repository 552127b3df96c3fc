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

in_root "$folder/root" '
set -eu
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
/venv/bin/python -c "import vramscope; vramscope.mark(\"x\"); assert vramscope.peak() is None"
mkdir /opt/first
tar -xzf /packages/*.tar.gz -C /opt/first --strip-components 1
mv /opt/first /opt/moved
try "tar.gz, moved" /opt/moved/bin/vramscope
dpkg -i /packages/*.deb >/dev/null
try "deb" vramscope
man -w vramscope-run >/dev/null
for name in vramscope vramscope-collector vramscope-symbolizer; do
    if ldd /usr/bin/$name | grep "not found"; then exit 1; fi
done
dpkg -r vramscope >/dev/null
test ! -e /usr/bin/vramscope
test ! -e /usr/lib/libvramscope.so
echo "ok: nothing of the deb stays"' "$folder:/packages:ro"
