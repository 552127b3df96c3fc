#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# libFuzzer over `vramscope explain`, from the pastes of the golden tests.
#   fuzz_explain.sh SOURCE-FOLDER SECONDS
set -euo pipefail
source=$1 seconds=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
clang=$(command -v clang-14 || command -v clang) || {
    echo "skipped: no clang (apt-get install clang-14 libclang-rt-14-dev)"
    exit 77
}
# The words the parsers look for, so that they need not be found by chance.
grep -ohE '"[A-Za-z_:(=+.]{6,}"' "$source"/collector/cli/explain/*.c | sort -u >"$folder/words"
mkdir "$folder/found"
if ! "$clang" -g -O1 -std=gnu11 -D_GNU_SOURCE -fsanitize=fuzzer,address,undefined \
    -fno-sanitize-recover=undefined -I"$source/formats" -I"$source/collector/cli" \
    "$source/tests/fuzz/fuzz_explain.c" "$source"/collector/cli/explain/*.c \
    "$source/collector/cli/page.c" "$source/formats/replay/format_size.c" -ljansson \
    -o "$folder/fuzz" 2>"$folder/log"; then
    if grep -q 'libclang_rt.fuzzer' "$folder/log"; then
        echo "skipped: no libFuzzer (apt-get install libclang-rt-14-dev)"
        exit 77
    fi
    cat "$folder/log"
    exit 1
fi
"$folder/fuzz" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=1024 -max_len=65536 \
    -dict="$folder/words" -print_final_stats=1 \
    -artifact_prefix="${TMPDIR:-/tmp}/vramscope-fuzz-explain-" "$folder/found" \
    "$source/tests/cli/pastes" 2>&1 | tail -n 12
