#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The wheel for any system in bare environments of the oldest and the newest Python there is here, from
# 3.8 on, with what pip brings along: any.sh TRACE PAGE. Exit status 77: pip cannot reach what it needs.
set -euo pipefail
trace=$(realpath "$1") page=$(realpath "$2")
cd "$(dirname "$0")/../.."
grep -q @DATA@ "$page" || { echo "skipped: built without D3"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
wheel=$(python3 scripts/packaging/pure_wheel.py "$page" "$folder/wheels" 9.8.7)

pythons() { # version and path of every Python from 3.8 on
    local one
    for one in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python3 /usr/bin/python3 /usr/local/bin/python3; do
        [ -x "$one" ] || continue
        "$one" -c 'import sys, venv, ensurepip
if sys.version_info >= (3, 8): print("%d.%02d %s" % (*sys.version_info[:2], sys.executable))' 2>/dev/null || true
    done | sort -u
}

try() { # python
    local own=$folder/venv
    rm -rf "$own"
    "$1" -m venv "$own"
    if ! "$own/bin/pip" install --quiet --disable-pip-version-check "$wheel" >"$folder/pip" 2>&1; then
        grep -q "No matching distribution\|Could not find\|Connection" "$folder/pip" || { cat "$folder/pip"; exit 1; }
        echo "skipped: pip cannot get zstandard"
        exit 77
    fi
    # Nothing of the native wheel, no compiler, no CUDA: what a laptop has.
    export PATH=$own/bin
    vramscope --version | /usr/bin/grep -q "9.8.7 (reader in Python)"
    vramscope report "$trace" >"$folder/page"
    /usr/bin/grep -q "^GPU 0 " "$folder/page"
    python -m vramscope report --json "$trace" | python -c 'import json, sys; assert json.load(sys.stdin)["devices"]'
    python - "$trace" "$folder/packed.zst" <<'PY'
import sys, zstandard
with open(sys.argv[1], "rb") as file, open(sys.argv[2], "wb") as out:
    out.write(zstandard.ZstdCompressor().compress(file.read()))
PY
    vramscope report "$folder/packed.zst" | /usr/bin/tail -n +2 | /usr/bin/cmp - <(/usr/bin/tail -n +2 "$folder/page")
    vramscope html "$trace" -o "$folder/page.html" --force
    /usr/bin/grep -q vramscope-html/1 "$folder/page.html"
    python -c 'import vramscope; vramscope.mark("x"); assert vramscope.peak() is None'
    echo "ok: $("$own/bin/python" --version)"
}

found=$(pythons)
[ -n "$found" ] || { echo "skipped: no Python with venv"; exit 77; }
oldest=$(head -n 1 <<<"$found") newest=$(tail -n 1 <<<"$found")
(try "${oldest#* }")
[ "$oldest" = "$newest" ] || (try "${newest#* }")
