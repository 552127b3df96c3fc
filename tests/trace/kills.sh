#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The states in which a dying writer leaves its file, read by the C reader and by
# reader.py: the same lines.
set -uo pipefail
kills=$1 dump=$2 reader=$3
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
"$kills" "$folder" || exit 1
"$python" "$reader" --each "$folder"/*.vscope || exit 1
compared=0 different=0
for state in "$folder"/*.vscope; do
    compared=$((compared + 1))
    "$dump" "$state" >"$folder/c" 2>&1 && [ -e "$state.python" ] &&
        cmp -s "$folder/c" "$state.python" && continue
    different=$((different + 1))
    echo "different: ${state##*/}"
    diff "$folder/c" "$state.python" | head -n 6
done
echo "$compared states compared, $different different"
[ "$compared" -ge 60 ] && [ "$different" -eq 0 ]
