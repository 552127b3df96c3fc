/* SPDX-License-Identifier: Apache-2.0 */
/* One line for a person: see trace_why.h. */
#include "trace_why.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void vs_say(struct vs_error *error, const char *format, ...)
{
    if (error == NULL)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
}

static const char *what_to_do(int why)
{
    switch (why) {
    case -ENOENT:
    case -ENOTDIR:
        return ": check the name";
    case -EACCES:
    case -EPERM:
        return ": try as its owner, or ask for the right to read it";
    default:
        return "";
    }
}

void vs_say_why(struct vs_error *error, const char *path, const struct vs_source *source,
                const struct vs_index *index, int why)
{
    if (why == -EISDIR)
        vs_say(error, "%s is a directory: give the trace file in it", path);
    else if (why == -EINVAL && source->fd < 0 && source->memory == NULL)
        vs_say(error, "%s is not a regular file: give a .vscope trace", path);
    else if (why == -EINVAL && source->bytes == 0)
        vs_say(error, "%s is empty: nothing was recorded in it", path);
    else if (why == -EINVAL)
        vs_say(error, "%s is not a vramscope trace: give a .vscope file", path);
    else if (why == -ENOTSUP && index->version != VS_TRACE_FORMAT_VERSION)
        vs_say(error,
               "%s has trace format %u, this vramscope reads up to %u: use a newer vramscope", path,
               index->version, VS_TRACE_FORMAT_VERSION);
    else if (why == -ENOTSUP)
        vs_say(error,
               "%s holds chunks of type 0x%04x that must be understood: use a newer vramscope",
               path, index->unsupported_type);
    else
        vs_say(error, "%s cannot be read: %s%s", path, strerror(-why), what_to_do(why));
}
