#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The reading half builds without CUDA's headers, libunwind and elfutils, and says of a trace what the
# whole build says: reading_half.sh BUILD, the folder of the whole build. What it needs is hidden from
# CMake, and the compiler's own list of headers shows that none of it was used.
set -euo pipefail
build=$(realpath "$1")
cd "$(dirname "$0")/../.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
half=$folder/half launcher=()
command -v ccache >/dev/null && launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache)

hidden=()
for what in DW ELF IBERTY UNWIND; do
    hidden+=("-DVS_${what}_LIBRARY=" "-DVS_${what}_INCLUDE=")
done
cmake -S . -B "$half" -G Ninja -DCMAKE_BUILD_TYPE=Release -DVS_READER_ONLY=ON -DVS_TESTS=OFF "${hidden[@]}" \
    "${launcher[@]}" >"$folder/log" 2>&1 && cmake --build "$half" -j "$(nproc)" >>"$folder/log" 2>&1 ||
    { tail -n 20 "$folder/log"; exit 1; }

programs=$(cd "$half/bin" && echo *)
[ "$programs" = vramscope ] || { echo "built: $programs"; exit 1; }
headers=$(ninja -C "$half" -t deps | sed -n 's/^ \+//p' | sort -u)
[ "$(wc -l <<<"$headers")" -gt 100 ] || { echo "no list of headers"; exit 1; }
if grep -E '/(cuda[a-z_]*|nccl|libunwind[a-z0-9_-]*|unwind|gelf|libelf|libdw|libdwfl|dwarf|demangle)\.h$|/elfutils/' <<<"$headers"; then
    echo "the reading half uses the headers above"
    exit 1
fi
if readelf -d "$half/bin/vramscope" | grep -E 'NEEDED.*(cuda|unwind|libdw|libelf|iberty)'; then
    exit 1
fi

compared=0
same() { # arguments of vramscope
    local one=0 other=0
    "$build/bin/vramscope" "$@" >"$folder/whole.out" 2>"$folder/whole.err" || one=$?
    "$half/bin/vramscope" "$@" >"$folder/half.out" 2>"$folder/half.err" || other=$?
    compared=$((compared + 1))
    if [ $one -ne $other ] || ! cmp "$folder/whole.out" "$folder/half.out" || ! cmp "$folder/whole.err" "$folder/half.err"; then
        echo "different: vramscope $*"
        exit 1
    fi
}
for name in stacks driver lossy faulty; do
    trace=$folder/$name.vscope
    "$build/bin/mktrace" "tests/cli/traces/$name.txt" "$trace"
    same report "$trace"
    same report --json "$trace"
    same report --markdown "$trace"
    same timeline --csv "$trace"
    same dump "$trace"
    same verify "$trace"
    for format in csv json folded pprof pytorch sqlite html; do
        same export -f $format -o - "$trace"
    done
done
! "$half/bin/vramscope" run -- true 2>"$folder/run" && grep -q "only reads traces" "$folder/run"
echo "$compared outputs are the same"
