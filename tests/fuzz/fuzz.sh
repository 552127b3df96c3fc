#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Seeds from trace-writer, then either the plain driver or libFuzzer over them.
#   fuzz.sh corpus RUN-CORPUS TRACE-WRITER ROUNDS
#   fuzz.sh libfuzzer SOURCE-FOLDER TRACE-WRITER SECONDS
set -euo pipefail
mode=$1 what=$2 writer=$3 amount=$4
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/seeds" "$folder/found"
for shape in $("$writer"); do
    "$writer" "$shape" "$folder/seeds/$shape"
done
# Packed traces are read too.
gzip -c "$folder/seeds/$shape" >"$folder/seeds/$shape.gz"
python3 -m zipfile -c "$folder/seeds/$shape.zip" "$folder/seeds/$shape"

if [ "$mode" = corpus ]; then
    exec_status=0
    "$what" "$amount" "$folder"/seeds/* || exec_status=$?
    exit $exec_status
fi
clang=$(command -v clang-14 || command -v clang) || {
    echo "skipped: no clang (apt-get install clang-14 libclang-rt-14-dev)"
    exit 77
}
sources=("$what"/formats/*.c)
if ! "$clang" -g -O1 -std=gnu11 -D_GNU_SOURCE -fsanitize=fuzzer,address,undefined \
    -fno-sanitize-recover=undefined -I"$what/formats" "$what/tests/fuzz/fuzz_reader.c" \
    "${sources[@]}" -lz -lzstd -lxxhash -ljansson -o "$folder/fuzz" 2>"$folder/log"; then
    if grep -q 'libclang_rt.fuzzer' "$folder/log"; then
        echo "skipped: no libFuzzer (apt-get install libclang-rt-14-dev)"
        exit 77
    fi
    cat "$folder/log"
    exit 1
fi
# Every crash is kept where it can be looked at.
"$folder/fuzz" -max_total_time="$amount" -timeout=20 -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1 \
    -artifact_prefix="${TMPDIR:-/tmp}/vramscope-fuzz-" "$folder/found" "$folder/seeds" 2>&1 |
    tail -n 12
