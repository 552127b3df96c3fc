/* SPDX-License-Identifier: Apache-2.0 */
/* Making and filling the trace file. */
#include "write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "name.h"

#define CHUNK_EVENTS 16384U
#define ZSTD_LEVEL 3
#define ALTERNATIVES_MAX 100000U

static const char *advice(int error)
{
    switch (-error) {
    case ENOENT:
    case ENOTDIR:
        return "the folder does not exist: create it or set VRAMSCOPE_OUTPUT";
    case EACCES:
    case EPERM:
    case EROFS:
        return "no permission to write there: set VRAMSCOPE_OUTPUT to a folder of your own";
    case ENOSPC:
    case EDQUOT:
        return "no room left there: set VRAMSCOPE_OUTPUT to another file system";
    case EFBIG:
        return "the limit on file sizes (ulimit -f) is reached";
    case ENAMETOOLONG:
        return "the name is too long: set VRAMSCOPE_OUTPUT";
    default:
        return "set VRAMSCOPE_OUTPUT to another place";
    }
}

static void describe(int error, const char *path, uint64_t kept_bytes, struct vs_error *out)
{
    int used = snprintf(out->text, sizeof out->text, "cannot write %.256s: %s; %s", path,
                        strerror(-error), advice(error));
    if (kept_bytes && used > 0 && (size_t)used < sizeof out->text)
        snprintf(out->text + used, sizeof out->text - (size_t)used,
                 " (what was written before stays readable)");
}

static int create_file(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    fchmod(fd, 0600); /* whatever the program's umask is */
    return fd;
}

/* The first free name. Returns a descriptor or a negative errno value; output->path is the last
 * tried. */
static int create_free(struct output *output, const char *path)
{
    snprintf(output->path, sizeof output->path, "%s", path);
    int fd = create_file(output->path);
    for (unsigned n = 1; fd == -EEXIST && n <= ALTERNATIVES_MAX; n++) {
        int error = name_alternative(path, n, output->path, sizeof output->path);
        fd = error < 0 ? error : create_file(output->path);
    }
    return fd;
}

int output_open(struct output *output, const char *path, struct vs_error *error)
{
    memset(output, 0, sizeof *output);
    output->fd = create_free(output, path);
    if (output->fd < 0) {
        output->error = output->fd;
    } else {
        output->error = vs_writer_create(output->fd, CHUNK_EVENTS, ZSTD_LEVEL, &output->writer);
        if (output->error < 0)
            unlink(output->path); /* ours, just made, and empty */
    }
    if (output->error < 0)
        describe(output->error, output->path, 0, error);
    return output->error;
}

static bool can_write(const struct output *output)
{
    return output->writer && output->error == 0;
}

static void note(struct output *output, int result)
{
    if (result < 0 && output->error == 0)
        output->error = result;
}

void output_event(struct output *output, const struct vs_sequenced_event *event)
{
    if (!can_write(output)) {
        output->discarded_events++;
        return;
    }
    note(output, vs_writer_event(output->writer, event));
    output->events++;
}

void output_string(struct output *output, uint32_t id, const char *text, size_t bytes)
{
    if (can_write(output))
        note(output, vs_writer_string(output->writer, id, text, bytes));
}

void output_thread(struct output *output, const struct vs_thread_def *thread)
{
    if (can_write(output))
        note(output, vs_writer_thread(output->writer, thread));
}

void output_module(struct output *output, const struct vs_module_def *module)
{
    if (can_write(output))
        note(output, vs_writer_module(output->writer, module));
}

void output_device(struct output *output, const struct vs_device_def *device)
{
    if (can_write(output))
        note(output, vs_writer_device(output->writer, device));
}

void output_stack(struct output *output, const struct vs_stack_def *stack)
{
    if (can_write(output))
        note(output, vs_writer_stack(output->writer, stack));
}

void output_code(struct output *output, const struct vs_code_def *code)
{
    if (can_write(output))
        note(output, vs_writer_code(output->writer, code));
}

void output_symbol(struct output *output, const struct vs_symbol_def *symbol)
{
    if (can_write(output))
        note(output, vs_writer_symbol(output->writer, symbol));
}

void output_meta(struct output *output, const char *name, json_t *object)
{
    char *text = object && can_write(output) ? json_dumps(object, JSON_COMPACT) : NULL;
    json_decref(object);
    if (!text)
        return;
    note(output, vs_writer_meta(output->writer, name, text, strlen(text)));
    free(text);
}

void output_flush(struct output *output)
{
    if (can_write(output))
        note(output, vs_writer_flush(output->writer));
    if (output->writer)
        output->bytes = vs_writer_bytes(output->writer);
}

void output_close(struct output *output, bool complete)
{
    if (output->writer)
        note(output, vs_writer_close(output->writer, complete && output->error == 0));
    output->writer = NULL;
    if (output->fd >= 0)
        close(output->fd);
    output->fd = -1;
}

void output_describe_error(const struct output *output, struct vs_error *error)
{
    describe(output->error, output->path, output->bytes, error);
}
