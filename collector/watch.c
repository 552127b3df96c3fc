/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that waits for the target's death. */
#include "watch.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <time.h>

#include "futex.h"

#define STACK_BYTES (128U * 1024U)
#define POLL_WITHOUT_PIDFD_NS 50000000L

static void wait_by_pidfd(int pidfd)
{
    struct pollfd death = {.fd = pidfd, .events = POLLIN};
    while (poll(&death, 1, -1) < 0 && errno == EINTR)
        continue;
}

static void wait_by_looking(const struct target *target)
{
    static const struct timespec pause = {0, POLL_WITHOUT_PIDFD_NS};
    while (target_alive(target))
        nanosleep(&pause, NULL);
}

static void *watch_main(void *argument)
{
    struct watch *watch = argument;
    if (watch->target->pidfd >= 0)
        wait_by_pidfd(watch->target->pidfd);
    else
        wait_by_looking(watch->target);
    /* Sequentially consistent: the drain reads `dead` after it has read wake_futex. */
    atomic_store(&watch->dead, true);
    atomic_fetch_add(&watch->header->wake_futex, 1);
    futex_wake_all(&watch->header->wake_futex);
    return NULL;
}

void watch_start(struct watch *watch, const struct target *target, struct vs_ring_header *header)
{
    pthread_attr_t attributes;
    pthread_t thread;
    watch->target = target;
    watch->header = header;
    atomic_init(&watch->dead, false);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    int error = pthread_create(&thread, &attributes, watch_main, watch);
    pthread_attr_destroy(&attributes);
    watch->threaded = error == 0;
}

bool watch_is_dead(struct watch *watch)
{
    if (!watch->threaded && !atomic_load(&watch->dead)) {
        struct pollfd death = {.fd = watch->target->pidfd, .events = POLLIN};
        bool dead = death.fd >= 0 ? poll(&death, 1, 0) > 0 : !target_alive(watch->target);
        atomic_store(&watch->dead, dead);
    }
    return atomic_load(&watch->dead);
}
