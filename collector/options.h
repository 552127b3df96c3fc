/* SPDX-License-Identifier: Apache-2.0 */
/* What the collector was started with: shim/collector_start.h is the normative text. */
#ifndef VS_COLLECTOR_OPTIONS_H
#define VS_COLLECTOR_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct options {
    int ring_fd;
    int pidfd; /* -1: the kernel has none */
    uint32_t pid;
    const char *output;    /* pattern, absolute */
    const char *ring_path; /* of a ring that is a file; NULL: it has no name */
    const char *run_dir;   /* of `vramscope run`; NULL without */
    uint64_t flush_ns;
    uint64_t resolution_ns;
    bool keep_wanted; /* VRAMSCOPE_KEEP is set */
    bool hide;        /* VRAMSCOPE_PRIVATE=1 */
};

/*
 * Reads the command line and the VRAMSCOPE_* variables; a wrong variable leaves
 * its default (the shim has warned). Returns 0, or -EINVAL for a command line
 * that the shim would not write.
 */
int options_read(struct options *options, int argc, char **argv);

#endif
