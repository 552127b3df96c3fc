/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the collector is started: what the shim hands over and what
 * vramscope-collector may rely on. The normative text for both sides.
 *
 *   vramscope-collector --ring-fd 3 --pidfd 4 --pid PID --output PATTERN [--ring-path PATH]
 *
 *   --ring-fd N     descriptor of the ring, header and cells (formats/ring.h). A memfd sealed
 *                   against shrinking, growing and further seals, or with VRAMSCOPE_RING_AT=file
 *                   a regular file. Its size is the truth about how much may be mapped.
 *   --pidfd N       pidfd of the target; -1 where the kernel has none (then poll /proc/PID).
 *                   It says "readable" when the target is dead; it does not notice an exec.
 *   --pid PID       the target, in the collector's own pid namespace
 *   --output PATTERN  absolute; placeholders not expanded (%e %p %h %r %t %%). Ends in "/": a
 *                   folder, to which the collector adds the default pattern (with or without rank)
 *   --ring-path PATH  only with VRAMSCOPE_RING_AT=file: where the ring was created. The collector
 *                   renames it to "<final name of the trace>.ring" and unlinks that at a clean end.
 *
 * Environment: the target's at the start of recording, without the names in
 * collector_start.c's list (LD_*, GLIBC_TUNABLES, sanitizer and malloc options), without
 * VRAMSCOPE_OUTPUT, and without VRAMSCOPE_* variables whose value was wrong: the shim has warned,
 * the collector takes its default in silence. Added:
 *   VRAMSCOPE_TARGET_LIBRARY_PATH   the target's LD_LIBRARY_PATH, for finding libnvidia-ml.so.1
 *
 * State: descriptors 0, 1 and 2 are /dev/null, no other is open but the two above; working
 * directory "/", umask 077, a session of its own; every signal is unblocked and has its default
 * action, but HUP, INT, QUIT, TERM, PIPE, XFSZ, XCPU, TSTP, TTIN, TTOU, USR1 and USR2 are ignored
 * (only SIGKILL ends it early); all CPUs allowed, default memory policy, SCHED_OTHER.
 *
 * What the collector has to say to a person goes into collector_message (formats/ring.h).
 *
 * End of the target: pidfd readable, or end_kind == VS_END_EXEC and the target's memory no longer
 * is the one that was recorded. end_kind is set before an exec and cleared again when the exec
 * fails.
 */
#ifndef VS_SHIM_COLLECTOR_START_H
#define VS_SHIM_COLLECTOR_START_H

#include <stdbool.h>
#include <stdint.h>

struct vs_ring_header;

/* Where a started ring lies; the descriptors are the collector's alone. */
struct collector_started {
    struct vs_ring_header *ring; /* mapped shared and MADV_DONTFORK */
    uint64_t bytes;
    bool clock_is_counter; /* event_clock_is_counter() */
    int pid;               /* of the collector, in our pid namespace */
};

/*
 * Creates the ring and starts the collector on it. 0, or a negative errno value (nothing is left
 * behind then). Takes no lock, allocates only by mmap; all signals are blocked for the call's
 * duration (about a millisecond). `forked_from` goes into the header.
 */
int collector_start(struct collector_started *started, uint32_t forked_from);

#endif
