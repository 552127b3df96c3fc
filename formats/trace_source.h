/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a reader's bytes come from: a file, read through one window (never
 * mapped: a file that shrinks under a mapping kills its reader), or memory.
 */
#ifndef VS_FORMATS_TRACE_SOURCE_H
#define VS_FORMATS_TRACE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vs_source {
    int fd;                /* -1: memory */
    const uint8_t *memory; /* not owned */
    uint64_t bytes;        /* size when opened, or refreshed; later growth is not looked at */
    uint8_t *window;
    size_t window_capacity, window_bytes;
    uint64_t window_offset;
    int64_t written_ns; /* when the file had last been written, as of the last refresh */
    bool cut;           /* unpacked from a file that is cut off or damaged: more was in it */
    bool just_written;  /* so late before it that another write at once would not show */
};

/*
 * Opens a regular, non-empty file without following what is none (a FIFO does
 * not block). 0, -EISDIR, -EINVAL (not a regular file), or the system's error.
 */
int vs_source_open(const char *path, struct vs_source *source);
/* Cannot fail: 0. */
int vs_source_memory(const void *data, size_t bytes, struct vs_source *source);
void vs_source_close(struct vs_source *source);

/* Forgets what was read and takes the file as it is now. 0 or the system's error. */
int vs_source_refresh(struct vs_source *source);
/* Whether the file was, or may have been, written since it was opened or refreshed. */
bool vs_source_changed(const struct vs_source *source);

/*
 * `bytes` bytes at `offset`, valid until the next call. NULL with *error set:
 * -ENODATA beyond the end, -ENOMEM, or the read's error.
 */
const uint8_t *vs_source_at(struct vs_source *source, uint64_t offset, size_t bytes, int *error);

#endif
