/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The traced process as /proc shows it: facts at start and end, samples of its
 * memory, and whether it still runs our program. Only what decision 13 allows:
 * never its arguments, never its memory.
 */
#ifndef VS_COLLECTOR_TARGET_H
#define VS_COLLECTOR_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define TARGET_PID_CHAIN_MAX 8U
#define TARGET_LIMIT_NONE UINT64_MAX

struct target {
    uint32_t pid;                     /* in the target's own pid namespace */
    int pidfd;                        /* -1: the kernel has none */
    int proc_fd;                      /* /proc/PID, -1 when it cannot be opened */
    pid_t visible_pid;                /* that PID, in the namespace of our /proc; 0 unknown */
    uint64_t ring_device, ring_inode; /* of the mapped ring, to know it again in maps */
    uint64_t stack_start;             /* of the program at start; another one means exec */
    bool ring_visible; /* the ring was found in maps at start, so that its absence says something */
};

/* Opens /proc for the process behind `pidfd` (or `pid` when it is -1). Never fails: fields tell. */
void target_open(struct target *target, uint32_t pid, int pidfd, int ring_fd);
void target_close(struct target *target);

/* A file of /proc/PID as text. Returns its bytes (the zero not counted) or a negative errno value.
 */
ssize_t target_read(const struct target *target, const char *name, char *out, size_t out_bytes);

/* Path of the executable without " (deleted)". Returns 0 or a negative errno value. */
int target_executable(const struct target *target, char *out, size_t out_bytes);

/* The process's title: the name a program gives itself for ps and top, at most 15 bytes. */
int target_title(const struct target *target, char *out, size_t out_bytes);

/*
 * Folder of the first mapped file whose name begins with `name` ("libcuda.so.").
 * Returns 0, or -ENOENT.
 */
int target_mapped_folder(const struct target *target, const char *name, char *out,
                         size_t out_bytes);

struct target_ids {
    uint32_t pid_chain[TARGET_PID_CHAIN_MAX]; /* outermost visible namespace first */
    unsigned pid_count;
};
void target_ids(const struct target *target, struct target_ids *out);

struct target_memory {
    uint64_t resident_bytes;
    uint64_t cgroup_bytes;       /* of the group that binds; 0 without a limit */
    uint64_t cgroup_limit_bytes; /* TARGET_LIMIT_NONE without */
};
/* Returns 0, or a negative errno value when the process is gone. */
int target_memory(const struct target *target, struct target_memory *out);

/* True while the process exists and has not become a zombie. */
bool target_alive(const struct target *target);

/* True when the process runs another program than the one that mapped the ring. `thorough`: look at
 * its maps; otherwise only at its stack's address, which costs next to nothing. */
bool target_replaced(const struct target *target, bool thorough);

/*
 * How it ended, as wait(2) would say: from the zombie, or from the kernel's note
 * in the pidfd once it is reaped (Linux ≥ 6.15). Returns 0, or -ENODATA.
 */
int target_wait_status(const struct target *target, int *status);

/* True when a thread (or process) of this id exists in our pid namespace; also when that is
 * unknown. */
bool target_thread_exists(uint32_t thread);

#endif
