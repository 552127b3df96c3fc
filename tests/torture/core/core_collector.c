/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for vramscope-collector that writes down what shim/collector_start.h
 * promises it and every record it gets, one line each, into FOLDER/PID.log
 * (FOLDER is --output). Its first word on each line says what the line is.
 */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../consumer.h"

extern char **environ;

struct arguments {
    int ring_fd, pidfd, pid;
    const char *output, *ring_path;
};

static FILE *trace;

static const char *value_of(char **argv, const char *name)
{
    for (; *argv != NULL; argv++) {
        if (strcmp(*argv, name) == 0) {
            return argv[1];
        }
    }
    return NULL;
}

static void write_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    struct dirent *entry;
    while ((entry = readdir(folder)) != NULL) {
        char target[4096] = "";
        if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(folder) &&
            readlinkat(dirfd(folder), entry->d_name, target, sizeof(target) - 1) > 0) {
            fprintf(trace, "fd %s %s\n", entry->d_name, target);
        }
    }
    closedir(folder);
}

static void write_surroundings(void)
{
    char folder[4096];
    sigset_t blocked;
    sigprocmask(SIG_SETMASK, NULL, &blocked);
    fprintf(trace, "cwd %s\numask %o\npolicy %d\n", getcwd(folder, sizeof(folder)), umask(0),
            sched_getscheduler(0));
    fprintf(trace, "session %d\npgrp %d\nparent %d\n", getsid(0) == getpid(), getpgrp() == getpid(),
            getppid());
    for (int i = 1; i < 32; i++) {
        struct sigaction action;
        if (i != SIGKILL && i != SIGSTOP && sigaction(i, NULL, &action) == 0) {
            fprintf(trace, "signal %d %s %s\n", i,
                    action.sa_handler == SIG_IGN ? "ignored" : "default",
                    sigismember(&blocked, i) ? "blocked" : "open");
        }
    }
    for (char **entry = environ; *entry != NULL; entry++) {
        fprintf(trace, "env %s\n", *entry);
    }
}

static void write_record(struct consumer *consumer, uint64_t position, uint32_t thread,
                         uint32_t cells, const unsigned char *body, size_t bytes)
{
    (void)consumer;
    if (cells == 2) {
        struct vs_event event;
        memcpy(&event, body, sizeof(event));
        fprintf(trace, "event %lu %u %s %lu %lu %lu %d\n", position, thread,
                event.kind == VS_KIND_ALLOC         ? "alloc"
                : event.kind == VS_KIND_PROCESS_END ? "end"
                : event.kind == VS_KIND_UNDO        ? "undo"
                                                    : "other",
                event.address, event.size, event.handle, event.module);
        return;
    }
    struct vs_record_head head;
    memcpy(&head, body, sizeof(head));
    size_t skip =
        sizeof(head) + (head.type == VS_RECORD_MODULE ? sizeof(struct vs_record_module) : 0);
    size_t text = head.bytes + sizeof(head) - skip;
    fprintf(trace, "define %d %u %.*s\n", head.type, head.id,
            (int)(text < bytes - skip ? text : bytes - skip), body + skip);
}

static bool target_is_dead(const struct arguments *arguments)
{
    struct pollfd poll_for = {arguments->pidfd, POLLIN, 0};
    if (arguments->pidfd >= 0) {
        return poll(&poll_for, 1, 0) == 1;
    }
    return kill(arguments->pid, 0) != 0;
}

/* Until the target is dead, or has gone over to another program. */
static void collect(struct consumer *consumer, const struct arguments *arguments)
{
    int exec_rounds = 0;
    bool dead;
    do {
        dead = target_is_dead(arguments);
        consumer->process_is_dead = dead;
        consumer_drain(consumer);
        fflush(trace);
        consumer_written(consumer);
        exec_rounds = atomic_load(&consumer->ring->end_kind) == VS_END_EXEC ? exec_rounds + 1 : 0;
        if (!dead) {
            consumer_sleep(consumer, 5000000);
        }
    } while (!dead && exec_rounds < 100);
}

static void write_totals(const struct consumer *consumer)
{
    struct vs_ring_header *ring = consumer->ring;
    uint64_t lost[VS_LOSS_CAUSES] = {0};
    for (int cause = 0; cause < VS_LOSS_CAUSES; cause++) {
        for (unsigned i = 0; i < VS_RING_DEVICES * VS_RING_LOSS_KINDS; i++) {
            lost[cause] += ring->loss[cause][i / VS_RING_LOSS_KINDS][i % VS_RING_LOSS_KINDS].events;
        }
        fprintf(trace, "lost %d %lu\n", cause, lost[cause]);
    }
    fprintf(trace, "end %u %d\n", atomic_load(&ring->end_kind), atomic_load(&ring->end_value));
    fprintf(trace, "torn %lu\nfaults %lu\nabandoned %lu\nforked_from %u\n", consumer->torn,
            consumer->faults, atomic_load(&ring->abandoned_hooks), ring->forked_from);
}

int main(int argc, char **argv)
{
    char name[4096];
    struct stat status;
    struct arguments arguments = {atoi(value_of(argv, "--ring-fd")),
                                  atoi(value_of(argv, "--pidfd")), atoi(value_of(argv, "--pid")),
                                  value_of(argv, "--output"), value_of(argv, "--ring-path")};
    (void)argc;

    if (arguments.output == NULL) {
        return 2;
    }
    fstat(arguments.ring_fd, &status);
    struct vs_ring_header *ring = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE,
                                       MAP_SHARED, arguments.ring_fd, 0);
    struct consumer consumer = {.ring = ring, .on_record = write_record};
    snprintf(name, sizeof(name), "%s%d.%d.log", arguments.output, arguments.pid, getpid());
    trace = fopen(name, "wx");
    if (trace == NULL) {
        snprintf(ring->collector_message, sizeof(ring->collector_message), "cannot write %.400s",
                 name);
        atomic_store(&ring->collector_messages, 1);
        atomic_store(&ring->collector_state, VS_COLLECTOR_FAILED);
        return 1;
    }
    fprintf(trace, "ring %lu %s\n", ring->cell_count,
            arguments.ring_path != NULL ? arguments.ring_path : "-");
    fprintf(trace, "seals %d\n", fcntl(arguments.ring_fd, F_GET_SEALS));
    write_descriptors();
    write_surroundings();
    atomic_store(&ring->collector_state, VS_COLLECTOR_READY);
    collect(&consumer, &arguments);
    write_totals(&consumer);
    fprintf(trace, "done\n");
    fclose(trace);
    if (arguments.ring_path != NULL) {
        unlink(arguments.ring_path);
    }
    atomic_store(&ring->collector_state, VS_COLLECTOR_DONE);
    return 0;
}
