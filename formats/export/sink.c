/* SPDX-License-Identifier: Apache-2.0 */
/* Buffered bytes with a sticky error: see sink.h. */
#include "sink.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static int write_fd(void *self, const void *data, size_t bytes)
{
    int fd = (int)(intptr_t)self;
    const char *from = data;
    while (bytes > 0) {
        ssize_t wrote = write(fd, from, bytes);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0)
            return -errno;
        from += wrote;
        bytes -= (size_t)wrote;
    }
    return 0;
}

void vs_sink_init(struct vs_sink *sink, int (*write)(void *, const void *, size_t), void *self)
{
    sink->write = write;
    sink->self = self;
    sink->bytes = 0;
    sink->error = 0;
    sink->used = 0;
}

void vs_sink_init_fd(struct vs_sink *sink, int fd)
{
    vs_sink_init(sink, write_fd, (void *)(intptr_t)fd);
}

void vs_sink_fail(struct vs_sink *sink, int error)
{
    if (sink->error == 0)
        sink->error = error;
}

static void hand_on(struct vs_sink *sink, const void *data, size_t bytes)
{
    if (sink->error == 0 && bytes != 0)
        sink->error = sink->write(sink->self, data, bytes);
    sink->bytes += bytes;
}

int vs_sink_flush(struct vs_sink *sink)
{
    hand_on(sink, sink->buffer, sink->used);
    sink->used = 0;
    return sink->error;
}

void vs_sink_put(struct vs_sink *sink, const void *data, size_t bytes)
{
    if (bytes > VS_SINK_ROOM) {
        vs_sink_flush(sink);
        hand_on(sink, data, bytes);
        return;
    }
    char *at = vs_sink_room(sink, bytes);
    vs_sink_wrote(sink, vs_put_bytes(at, data, bytes));
}

void vs_sink_text(struct vs_sink *sink, const char *text)
{
    vs_sink_put(sink, text, strlen(text));
}

void vs_sink_number(struct vs_sink *sink, uint64_t value)
{
    char *at = vs_sink_room(sink, 20);
    vs_sink_wrote(sink, vs_put_number(at, value));
}

void vs_sink_printf(struct vs_sink *sink, const char *format, ...)
{
    char *at = vs_sink_room(sink, VS_SINK_ROOM);
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(at, VS_SINK_ROOM, format, arguments);
    va_end(arguments);
    if (length < 0 || length >= VS_SINK_ROOM)
        vs_sink_fail(sink, -EOVERFLOW);
    else
        vs_sink_wrote(sink, at + length);
}

char *vs_put_number(char *at, uint64_t value)
{
    static const char pairs[] =
        "00010203040506070809101112131415161718192021222324252627282930313233"
        "34353637383940414243444546474849505152535455565758596061626364656667"
        "6869707172737475767778798081828384858687888990919293949596979899";
    char digits[20];
    size_t from = sizeof(digits);
    while (value >= 100) {
        from -= 2;
        memcpy(digits + from, pairs + value % 100 * 2, 2);
        value /= 100;
    }
    if (value >= 10) {
        from -= 2;
        memcpy(digits + from, pairs + value * 2, 2);
    } else {
        digits[--from] = (char)('0' + value);
    }
    return vs_put_bytes(at, digits + from, sizeof(digits) - from);
}
