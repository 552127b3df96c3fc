/* SPDX-License-Identifier: Apache-2.0 */
/* The two futex operations that the ring's protocol uses (formats/ring.h): shared, with a time-out.
 */
#ifndef VS_COLLECTOR_FUTEX_H
#define VS_COLLECTOR_FUTEX_H

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define FUTEX_NS_PER_SECOND 1000000000ULL

/* Sleeps until woken, until `*word` differs from `expected`, or for `timeout_ns`; also wakes for no
 * reason. */
static inline void futex_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
    struct timespec timeout = {(time_t)(timeout_ns / FUTEX_NS_PER_SECOND),
                               (long)(timeout_ns % FUTEX_NS_PER_SECOND)};
    syscall(SYS_futex, word, FUTEX_WAIT, expected, &timeout, NULL, 0);
}

static inline void futex_wake_all(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

#endif
