#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Bytes per event: real PyTorch training loops on the simulated device are recorded, and
# their events written anew at other rates. Run by `scripts/bench size`. Prints Markdown.
#   size.sh [--build FOLDER] [--steps N]
set -euo pipefail
cd "$(dirname "$0")/../.."

build=build/release steps=200
while [ $# -gt 0 ]; do
    case $1 in
        --build) build=${2:?--build needs a folder}; shift ;;
        --steps) steps=${2:?--steps needs a number}; shift ;;
        *) echo "usage: scripts/bench size [--build FOLDER] [--steps N]" >&2; exit 2 ;;
    esac
    shift
done
python=$(scripts/torch-env)
where=$(mktemp -d)
trap 'rm -rf "$where"' EXIT

{ [ -f "$build/CMakeCache.txt" ] || cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo
  cmake --build "$build"; cmake --build "$build" --target trace_size; } >"$where/log" 2>&1 ||
    { tail -n 20 "$where/log" >&2; exit 1; }

record() { # fixed|varying STEPS EVENTS_PER_SECOND FILE
    VRAMSCOPE_BUILD=$build VRAMSCOPE_LOG=error "$build/bin/vramscope" run -o "$4" -- \
        scripts/simgpu --memory 8G -- "$python" tests/bench/size_train.py "$1" "$2" "$3" >"$where/log" 2>&1 ||
        { tail -n 20 "$where/log" >&2; exit 1; }
}

rewrite() { # TRACE EVENTS_PER_SECOND pauses|stretched
    "$build/bench/trace_size" "$1" "$2" "$3" "$where/rewritten.vscope"
}

# The rows of several rewritings beside each other; a row that one of them lacks is 0 there.
table() { # FILE…
    awk -F ' *[|] *' '
        FNR == 1 { file++ }
        /^[|]/ { if (!($2 in seen)) { seen[$2]; order[++rows] = $2 } value[$2, file] = $3 }
        END { for (r = 1; r <= rows; r++) {
                  line = "| " order[r] " |"
                  for (f = 1; f <= file; f++) line = line " " ((order[r], f) in value ? value[order[r], f] : 0) " |"
                  print line } }' "$@"
}

total() { # FILE: bytes per event, everything of it
    awk -F ' *[|] *' '/everything/ { print $3 }' "$1"
}

for shape in fixed varying; do
    record $shape "$steps" 0 "$where/$shape.vscope"
    for rate in 1000 100000; do
        rewrite "$where/$shape.vscope" $rate pauses >"$where/$shape-$rate"
        rewrite "$where/$shape.vscope" $rate stretched >"$where/$shape-$rate-stretched"
    done
    "$build/bench/trace_size" "$where/$shape.vscope" >"$where/$shape-whole"
    record $shape 30 1000 "$where/$shape-live.vscope"
    rewrite "$where/$shape-live.vscope" 1000 pauses >"$where/$shape-live"
done

echo "Bytes per event, chunks merged, of $(sed -n '1s/^events \([0-9]*\).*/\1/p' "$where/fixed-1000") events (fixed shape) and" \
    "$(sed -n '1s/^events \([0-9]*\).*/\1/p' "$where/varying-1000") (varying) of a transformer's training loop."
echo "The loop waits after each step, so that events come at that rate on average. Tables of names are whole, not per event."
echo
echo "| | fixed, 1,000/s | fixed, 100,000/s | varying, 1,000/s | varying, 100,000/s |"
echo "|---|---|---|---|---|"
table "$where/fixed-1000" "$where/fixed-100000" "$where/varying-1000" "$where/varying-100000"
echo
echo "The same if every step between two events were stretched alike: fixed $(total "$where/fixed-1000-stretched") and" \
    "$(total "$where/fixed-100000-stretched"), varying $(total "$where/varying-1000-stretched") and $(total "$where/varying-100000-stretched")."
echo "Recorded live at about 1,000/s: fixed $(total "$where/fixed-live"), varying $(total "$where/varying-live")."
echo "Processor time of the writer at 100,000/s: $(sed -n '1s/.*writer \([0-9]* ns an event\).*/\1/p' "$where/fixed-100000") (fixed)," \
    "$(sed -n '1s/.*writer \([0-9]* ns an event\).*/\1/p' "$where/varying-100000") (varying)."
echo
echo "The recorded traces as they are, of their programs' starts and ends too, with all names:"
echo
echo "| | fixed | varying |"
echo "|---|---|---|"
table "$where/fixed-whole" "$where/varying-whole" | grep -E "table|everything|room"
for shape in fixed varying; do echo "$shape: $(sed -n 1p "$where/$shape-whole")."; done
