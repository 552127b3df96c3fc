/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Getting the shim into a program: the value of LD_PRELOAD, programs that the
 * dynamic loader will not preload into, and processes that use CUDA without it.
 */
#ifndef VS_CLI_RUN_PRELOAD_H
#define VS_CLI_RUN_PRELOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define RUN_SHIM_NAME "libvramscope.so"

/*
 * Path of the shim that belongs to this vramscope: ../lib beside its folder, in
 * a build tree as in an installed one. Returns 0 or a negative errno value.
 */
int run_find_shim(char *out, size_t out_bytes);

/*
 * LD_PRELOAD with `shim` first, then what was there, without other entries of
 * our name: a nested run must not load two. `existing` may be NULL. Returns 0 or
 * -ENAMETOOLONG; -EINVAL when the shim's path holds a blank or a colon, which
 * LD_PRELOAD cannot express.
 */
int run_preload_value(const char *shim, const char *existing, char *out, size_t out_bytes);

/*
 * Why the loader would not preload into this command ("… is set-user-ID"), as
 * execvp would find it; false when it will, or when nothing can be said.
 */
bool run_cannot_preload(const char *command, char *why, size_t why_bytes);

struct run_dropped {
    pid_t pid; /* 0: none */
    char name[32];
};

/*
 * Looks through the descendants of `root` for a process that has a CUDA driver
 * mapped and not the shim. Returns true and fills `out` with the first one.
 */
bool run_find_dropped(pid_t root, struct run_dropped *out);

#endif
