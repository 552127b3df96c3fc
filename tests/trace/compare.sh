#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every shape of trace, read by the C reader and by reader.py: the same lines, or
# both refuse. Then the same for the plain one with a few bytes flipped or cut off.
set -uo pipefail
writer=$1 dump=$2 reader=$3
python=
for candidate in "${VRAMSCOPE_TEST_PYTHON:-}" python3 /usr/bin/python3; do
    [ -n "$candidate" ] && "$candidate" -c 'import xxhash, zstandard' 2>/dev/null && python=$candidate && break
done
if [ -z "$python" ]; then
    echo "skipped: no python3 with the modules xxhash and zstandard (apt-get install python3-xxhash python3-zstandard)"
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
compared=0 different=0

compare() { # file
    "$dump" "$1" >"$folder/c" 2>"$folder/c.why"
    local c=$? p=0
    [ -e "$1.python" ] || { p=1 && : >"$1.python"; }
    compared=$((compared + 1))
    if [ $c -gt 1 ] || [ $c -ne $p ] || ! cmp -s "$folder/c" "$1.python"; then
        different=$((different + 1))
        echo "different: ${1##*/} (C reader $c, reader.py $p)"
        tail -n 2 "$folder/c.why"
        diff "$folder/c" "$1.python" | head -n 6
    fi
}

flip() { # file, offset
    "$python" -c 'import sys
f = open(sys.argv[1], "r+b"); f.seek(int(sys.argv[2])); b = f.read(1)
f.seek(int(sys.argv[2])); f.write(bytes([b[0] ^ 0x40]))' "$1" "$2"
}

for shape in $("$writer"); do
    "$writer" "$shape" "$folder/$shape.vscope" || exit 1
done
bytes=$(stat -c %s "$folder/plain.vscope")
for i in $(seq 1 25); do
    offset=$((64 + i * (bytes - 64) / 26))
    cp "$folder/plain.vscope" "$folder/plain-flipped-at-$offset.vscope"
    flip "$folder/plain-flipped-at-$offset.vscope" "$offset"
    head -c "$offset" "$folder/plain.vscope" >"$folder/plain-cut-at-$offset.vscope"
done
"$python" "$reader" --each "$folder"/*.vscope || exit 1
for file in "$folder"/*.vscope; do
    compare "$file"
done
echo "$compared traces compared, $different different"
[ "$compared" -ge 60 ] && [ "$different" -eq 0 ]
