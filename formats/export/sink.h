/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where an export's bytes go: a buffer in front of something that takes them. The
 * first error sticks and later bytes are dropped, so that writers need not look
 * after every number; who began the export asks once at its end.
 */
#ifndef VS_EXPORT_SINK_H
#define VS_EXPORT_SINK_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { VS_SINK_BYTES = 1 << 18, VS_SINK_ROOM = VS_SINK_BYTES / 2 };

struct vs_sink {
    /* Takes all of it: 0 or a negative errno value. */
    int (*write)(void *self, const void *data, size_t bytes);
    void *self;
    uint64_t bytes; /* handed on so far */
    int error;      /* the first one; 0 none */
    size_t used;
    char buffer[VS_SINK_BYTES];
};

void vs_sink_init(struct vs_sink *sink, int (*write)(void *, const void *, size_t), void *self);
/* Into a descriptor, which the caller owns: a file, stdout, a pipe. */
void vs_sink_init_fd(struct vs_sink *sink, int fd);
/* Hands on what is in the buffer. Returns the sticky error. */
int vs_sink_flush(struct vs_sink *sink);
void vs_sink_fail(struct vs_sink *sink, int error);

void vs_sink_put(struct vs_sink *sink, const void *data, size_t bytes);
void vs_sink_text(struct vs_sink *sink, const char *text);
void vs_sink_number(struct vs_sink *sink, uint64_t value);
void vs_sink_printf(struct vs_sink *sink, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- rows, written straight into the buffer ----------------------------------------- */

/* Room for `bytes` ≤ VS_SINK_ROOM; vs_sink_wrote says how far it was filled. */
static inline char *vs_sink_room(struct vs_sink *sink, size_t bytes)
{
    if (sink->used + bytes > sizeof(sink->buffer))
        vs_sink_flush(sink);
    return sink->buffer + sink->used;
}

static inline void vs_sink_wrote(struct vs_sink *sink, const char *end)
{
    sink->used = (size_t)(end - sink->buffer);
}

/* Decimal digits; returns the end. At most 20 bytes. */
char *vs_put_number(char *at, uint64_t value);

static inline char *vs_put_bytes(char *at, const char *data, size_t bytes)
{
    memcpy(at, data, bytes);
    return at + bytes;
}

#endif
