/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trace file: made under its final name from the start, never over an
 * existing file, never through a symbolic link, readable by its owner alone. The
 * first error ends writing: what is in the file stays, everything after it is
 * counted and discarded, and the program goes on.
 */
#ifndef VS_COLLECTOR_WRITE_H
#define VS_COLLECTOR_WRITE_H

#include <jansson.h>
#include <linux/limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "../formats/record.h"
#include "../formats/trace.h"

struct output {
    int fd; /* -1: nothing can be written */
    struct vs_writer *writer;
    int error; /* 0, or the negative errno value that ended writing */
    char path[PATH_MAX];
    uint64_t bytes;            /* in the file, as of the last flush */
    uint64_t events;           /* handed to the writer */
    uint64_t discarded_events; /* met after the error */
};

/*
 * Makes the file at `path`, or at the first free of its alternatives, and writes
 * the trace's header. On failure returns the negative errno value, `error` says
 * it in one line, and the output discards everything from then on.
 */
int output_open(struct output *output, const char *path, struct vs_error *error);

void output_event(struct output *output, const struct vs_sequenced_event *event);
void output_string(struct output *output, uint32_t id, const char *text, size_t bytes);
void output_thread(struct output *output, const struct vs_thread_def *thread);
void output_module(struct output *output, const struct vs_module_def *module);
void output_device(struct output *output, const struct vs_device_def *device);
void output_stack(struct output *output, const struct vs_stack_def *stack);
void output_code(struct output *output, const struct vs_code_def *code);
void output_symbol(struct output *output, const struct vs_symbol_def *symbol);

/* Takes over `object` (may be NULL: then nothing happens). */
void output_meta(struct output *output, const char *name, json_t *object);

void output_flush(struct output *output);
void output_close(struct output *output, bool complete);

/* One line about output->error: what, which file, what to do. */
void output_describe_error(const struct output *output, struct vs_error *error);

#endif
