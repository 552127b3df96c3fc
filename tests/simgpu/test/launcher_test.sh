#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scripts/simgpu: status and signals pass through, preloads are kept, state is shared and removed.
# usage: launcher_test.sh BUILD SCRIPTS
set -u
export VRAMSCOPE_BUILD=$1
simgpu=$2/simgpu
failed=0

expect() { # WHAT GOT WANTED
    [ "$2" = "$3" ] || { echo "FAIL $1: got '$2', wanted '$3'"; failed=1; }
}

"$simgpu" sh -c 'exit 7'
expect "exit status" $? 7
"$simgpu" sh -c 'kill -9 $$' 2>/dev/null
expect "death by a signal" $? 137
expect "standard input" "$(echo hello | "$simgpu" cat)" hello
expect "no option" "$("$simgpu" 2>/dev/null; echo $?)" 2
expect "wrong option" "$("$simgpu" --nonsense 1 -- true 2>/dev/null; echo $?)" 2

"$simgpu" sh -c 'trap "exit 5" TERM; sleep 3 >/dev/null 2>&1 & wait' &
launcher=$!
sleep 0.5
kill -TERM $launcher
wait $launcher
expect "SIGTERM is passed on" $? 5

expect "what was preloaded stays first" \
    "$(LD_PRELOAD=libfirst.so "$simgpu" sh -c 'echo "${LD_PRELOAD%%:*}"' 2>/dev/null)" libfirst.so
expect "without preload" "$("$simgpu" --preload no sh -c 'echo "${LD_PRELOAD-none}"')" none

state=$("$simgpu" sh -c 'echo "$SIMGPU_STATE"')
expect "state is removed" "$([ -e "${state%/state}" ] && echo there || echo gone)" gone
expect "options reach the devices" \
    "$("$simgpu" --devices 2 --memory 3GiB simgpu-books | tail -1)" \
    "device 1: 0 of 3221225472 bytes used"
expect "other processes' use" \
    "$("$simgpu" --memory 3GiB --other 1GiB@0 simgpu-books)" \
    "device 0: 1073741824 of 3221225472 bytes used"
expect "programs without CUDA open nothing" \
    "$("$simgpu" sh -c 'ls -l /proc/self/fd' | grep -c simgpu)" 0

[ $failed = 0 ] && echo "launcher: all as expected"
exit $failed
