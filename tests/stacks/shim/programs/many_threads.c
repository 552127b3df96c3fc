/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Closes every descriptor from 3 up, opens its own, then starts threads one
 * after the other that allocate and free. At the end its descriptors are what
 * they were.
 *
 *   many_threads THREADS
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "../../../lifecycle/driver.h"

enum { OWN = 20 };

static struct driver driver;
static void *context;

static void *allocate(void *unused)
{
    (void)unused;
    driver_check(driver.context_set(context), "cuCtxSetCurrent");
    for (int i = 0; i < 3; i++) {
        uint64_t address = driver_alloc(&driver, 4096);
        driver_check(driver.release(address), "cuMemFree_v2");
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int threads = argc > 1 ? atoi(argv[1]) : 10;
    int own[OWN][2];
    struct stat before[OWN], after;
    driver = driver_open();
    context = driver_start(&driver);
    allocate(NULL);
    for (int fd = 3; fd < 1024; fd++) {
        close(fd);
    }
    for (int i = 0; i < OWN; i++) {
        if (pipe(own[i]) != 0 || own[i][0] != 3 + 2 * i || fstat(own[i][0], &before[i]) != 0) {
            printf("descriptor %d is not the program's\n", own[i][0]);
            return 1;
        }
    }
    for (int i = 0; i < threads; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, allocate, NULL) != 0) {
            return 3;
        }
        pthread_join(thread, NULL);
    }
    for (int i = 0; i < OWN; i++) {
        char byte = (char)i;
        if (fstat(own[i][0], &after) != 0 || after.st_ino != before[i].st_ino ||
            write(own[i][1], &byte, 1) != 1 || read(own[i][0], &byte, 1) != 1 || byte != (char)i) {
            printf("descriptor %d changed\n", own[i][0]);
            return 1;
        }
    }
    int next = open("/dev/null", O_RDONLY);
    if (next != 3 + 2 * OWN) {
        printf("the next descriptor is %d\n", next);
        return 1;
    }
    printf("descriptors whole\n");
    return 0;
}
