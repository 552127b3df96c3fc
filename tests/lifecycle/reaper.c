/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A wait(NULL) loop as pid 1 or as child subreaper, the way small container
 * inits and process supervisors are written. Usage: reaper [cuda] -- CMD…: uses
 * CUDA itself if asked, starts CMD, reaps until there is no child left, and
 * prints how many children ended, with what, and how many SIGCHLDs came.
 */
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "driver.h"

static volatile sig_atomic_t signals_seen;

static void count(int number)
{
    (void)number;
    signals_seen++;
}

int main(int argc, char **argv)
{
    int first = 1;
    bool cuda = argc > 1 && strcmp(argv[1], "cuda") == 0;
    if (cuda)
        first++;
    if (argc < first + 2 || strcmp(argv[first], "--") != 0)
        return 2;
    if (getpid() != 1)
        prctl(PR_SET_CHILD_SUBREAPER, 1);
    signal(SIGCHLD, count);
    if (cuda) {
        struct driver driver = driver_open();
        driver_start(&driver);
        driver_alloc(&driver, 1 << 20);
    }
    usleep(200000);
    printf("before: wait %d, SIGCHLD %d\n", (int)waitpid(-1, NULL, WNOHANG), (int)signals_seen);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        execvp(argv[first + 1], argv + first + 1);
        _exit(127);
    }
    int reaped = 0;
    int status = 0;
    pid_t ended;
    while ((ended = wait(&status)) > 0 || errno == EINTR) {
        if (ended < 0)
            continue;
        reaped++;
        if (ended == child)
            printf("child %x\n", (unsigned)status);
    }
    printf("reaped %d, SIGCHLD %d\n", reaped, (int)signals_seen);
    return 0;
}
