/* SPDX-License-Identifier: Apache-2.0 */
/* The process that listens for signals to the group. */
#include "run_witness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_MS 1000000
#define NS_PER_SECOND 1000000000LL
#define WAIT_MS 30
/* A service manager signals the processes of a job one after the other. */
#define SAME_TIME_NS (200LL * NS_PER_MS)

struct sighting {
    int64_t at_ns;
    int number;
};

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

#ifndef SYS_close_range /* glibc before 2.34 */
#define SYS_close_range 436
#endif
#define FALLBACK_CLOSE_UP_TO 1024

static void close_all_but(int kept)
{
    if (syscall(SYS_close_range, kept + 1, ~0U, 0) < 0) /* Linux before 5.9 */
        for (int fd = kept + 1; fd < FALLBACK_CLOSE_UP_TO; fd++)
            close(fd);
    for (int fd = 0; fd < kept; fd++)
        close(fd);
}

/* Holds none of the caller's descriptors open, and goes when the caller does. */
static _Noreturn void listen_for(const sigset_t *signals, int reports, pid_t caller)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "vramscope-ear");
    close_all_but(reports);
    while (getppid() == caller) {
        siginfo_t got;
        struct sighting seen = {.number = sigwaitinfo(signals, &got)};
        seen.at_ns = now_ns();
        if (seen.number > 0 && write(reports, &seen, sizeof seen) < 0 && errno != EAGAIN)
            break;
    }
    _exit(0);
}

void run_witness_start(struct run_witness *witness, const sigset_t *signals)
{
    int ends[2];
    pid_t caller = getpid();
    witness->pid = 0;
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return;
    pid_t pid = fork();
    if (pid == 0)
        listen_for(signals, ends[1], caller);
    close(ends[1]);
    if (pid < 0)
        close(ends[0]);
    else
        *witness = (struct run_witness){pid, ends[0]};
}

bool run_witness_saw(const struct run_witness *witness, int number)
{
    int64_t received_ns = now_ns();
    if (witness->pid == 0)
        return false;
    for (int64_t left_ms = WAIT_MS; left_ms > 0;
         left_ms = WAIT_MS - (now_ns() - received_ns) / NS_PER_MS) {
        struct pollfd news = {.fd = witness->reports, .events = POLLIN};
        struct sighting seen;
        if (poll(&news, 1, (int)left_ms) <= 0 ||
            read(witness->reports, &seen, sizeof seen) != (ssize_t)sizeof seen)
            return false;
        int64_t apart_ns = seen.at_ns - received_ns;
        if (seen.number == number && apart_ns > -SAME_TIME_NS && apart_ns < SAME_TIME_NS)
            return true;
    }
    return false;
}

void run_witness_stop(struct run_witness *witness)
{
    if (witness->pid == 0)
        return;
    kill(witness->pid, SIGKILL);
    waitpid(witness->pid, NULL, 0);
    close(witness->reports);
    witness->pid = 0;
}
