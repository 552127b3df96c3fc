/* SPDX-License-Identifier: Apache-2.0 */
/* What a process has mapped, and why the shim is not there. */
#ifndef VS_CLI_DOCTOR_PROC_H
#define VS_CLI_DOCTOR_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { PROC_MAX_LIBRARIES = 24, PROC_PATH_BYTES = 512 };

/* What /proc says of a process at one moment. */
struct proc_image {
    pid_t pid, parent;
    uint64_t start_ticks; /* since boot: tells a reused pid apart */
    char executable[PROC_PATH_BYTES];
    bool shim_mapped;
    bool libc_mapped;  /* the loader has come past what is preloaded */
    bool silent;       /* its end sends no signal: a clone on its way to become our collector */
    bool preload_set;  /* our shim's name is in LD_PRELOAD of its environment */
    bool environ_seen; /* its environment could be read */
    bool maps_seen;    /* its mappings could be read */
    bool disabled;     /* VRAMSCOPE_DISABLE is set */
    bool device_open;  /* a GPU, or the simulated one, is mapped: CUDA is started */
    bool secure;       /* runs with other rights than its caller: the loader drops
                          preloads */
    size_t library_count;
    char libraries[PROC_MAX_LIBRARIES][PROC_PATH_BYTES]; /* CUDA's own, as mapped */
};

/* 0, or a negative errno value (-ESRCH: gone, or a kernel thread). */
int proc_read(pid_t pid, struct proc_image *image);
/* Why the shim is not in a process, in words; NULL when it is, or when nothing
 * speaks against it.
 */
const char *proc_why_not(const struct proc_image *image);
/* Calls `visit` for each process below `root`, itself included. */
void proc_each_below(pid_t root, void (*visit)(pid_t pid, void *context), void *context);
/* Is the file name one of CUDA's libraries (driver, runtime, NVML, those that
 * carry a runtime)? */
bool proc_is_cuda_library(const char *path);

#endif
