/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library whose constructor waits for a lock of the program that opens it
 * (ctor_deadlock.c): it holds the loader's lock all the while.
 */
#include <pthread.h>

struct plugin_lock {
    pthread_mutex_t mutex;
    _Atomic int waiting;
};

extern struct plugin_lock ctor_plugin_lock;

__attribute__((constructor)) static void wait_for_the_lock(void)
{
    ctor_plugin_lock.waiting = 1;
    pthread_mutex_lock(&ctor_plugin_lock.mutex);
    pthread_mutex_unlock(&ctor_plugin_lock.mutex);
}
