/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exports: a trace in the form another tool reads. One file and one row of
 * vs_export_formats (formats.c) per format; what all of them need is here: the
 * opened trace, what was asked for, the events that pass the filters, a sink.
 *
 * Functions that return int give 0 or a negative errno value. What cannot be read
 * of a damaged trace is in `read_error` and the reader's status; the rest is exported.
 */
#ifndef VS_EXPORT_EXPORT_H
#define VS_EXPORT_EXPORT_H

#include <jansson.h>

#include "frames.h"
#include "replay/state.h"
#include "replay/summary.h"
#include "sink.h"
#include "trace.h"

/* The moment whose live set is exported. */
enum vs_export_instant {
    VS_AT_PEAK, /* of each device: most allocated */
    VS_AT_END,
    VS_AT_OOM, /* the last one */
    VS_AT_TIME
};

enum vs_export_metric {
    VS_METRIC_INUSE_SPACE,
    VS_METRIC_INUSE_OBJECTS,
    VS_METRIC_ALLOC_SPACE,
    VS_METRIC_ALLOC_OBJECTS,
    VS_METRICS
};

VS_MAP_DEFINE(vs_addresses, uint8_t);

struct vs_export {
    /* Asked for; zero is the default but for `device`. */
    const char *path;
    const char *called; /* what the output calls the trace; NULL: as its path ends */
    struct vs_window window;
    int device;         /* -1: all */
    uint64_t min_bytes; /* smaller allocations, blocks and places are left out */
    enum vs_export_instant at;
    int64_t at_ns; /* VS_AT_TIME: since the trace's beginning; below zero: before its end */
    enum vs_export_metric metric;
    uint64_t last; /* of the events only so many; 0: all */

    struct vs_sink *sink;
    const char *file; /* for formats that write a file of their own: its path; else NULL */
    /* Told now and then while events are read; `all` may be 0 when nothing is known. */
    void (*progress)(void *self, uint64_t done, uint64_t all);
    void *progress_self;
    struct vs_error *error; /* one line, by a format that has more to say than an errno value */

    /* Made by vs_export_open. */
    struct vs_reader *reader;
    struct vs_names names;
    json_t *process, *clock, *hooks, *end; /* never NULL afterwards */
    uint64_t start_ns;                     /* monotonic time of the trace's beginning */
    uint64_t from_ns, to_ns;               /* monotonic, both inside; 0 and UINT64_MAX: all */
    uint64_t moment_ns;                    /* of VS_AT_TIME, monotonic */
    int read_error;                        /* after which there are no more events; 0 none */

    /* Allocations that `min_bytes` left out and that are live: their frees go too. */
    struct vs_addresses left_out;
};

struct vs_export_format {
    const char *name;
    const char *suffix;
    int (*run)(struct vs_export *export);
    bool own_file;               /* writes export->file by itself, not the sink */
    bool has_moment, has_metric; /* what it writes depends on `at`, on `metric` */
};

/* Ends with a row without a name. */
extern const struct vs_export_format vs_export_formats[];
/* NULL when there is none of that name. */
const struct vs_export_format *vs_export_format(const char *name);

/*
 * Opens `path` and resolves the times asked for. -ERANGE: a window that ends before it begins, or
 * begins after the run, or a moment after it.
 */
int vs_export_open(struct vs_export *export, struct vs_error *error);
void vs_export_close(struct vs_export *export);

/* ---- events ------------------------------------------------------------------------------ */

typedef int vs_export_take(void *self, const struct vs_sequenced_event *event);

/* All events from the first; a positive result of `take` ends it early and is not an error. */
int vs_export_each(struct vs_export *export, vs_export_take *take, void *self);
/* Those that pass every filter, `last` included. */
int vs_export_each_chosen(struct vs_export *export, vs_export_take *take, void *self);
/* Time since the trace's beginning. */
static inline uint64_t vs_export_since(const struct vs_export *export, uint64_t time_ns)
{
    return time_ns > export->start_ns ? time_ns - export->start_ns : 0;
}

/* ---- state -------------------------------------------------------------------------------- */

/* A fold ready for the trace's first event. */
int vs_export_state(const struct vs_export *export, struct vs_state **out);
/* Sequence of the event whose state is that of VS_AT_OOM; -ENODATA when nothing failed so. */
int vs_export_find_oom(struct vs_export *export, uint64_t *sequence);
/* Whether an event is a request that failed for want of memory. */
bool vs_export_is_oom(const struct vs_export *export, const struct vs_event *event);

/* ---- what is said in the output ----------------------------------------------------------------
 */

/* -ENOTSUP, with `why` in the line that the export says. */
int vs_export_refuse(const struct vs_export *export, const char *why);
/* The same of `last`, by formats that list no events. */
int vs_export_refuse_last(const struct vs_export *export);

/* "from 1.5 s, device 0, at least 4096 bytes": empty when nothing was left out. */
void vs_export_filter_text(const struct vs_export *export, char *buffer, size_t bytes);
/* The same for a program; a new object, without members when nothing was left out. */
json_t *vs_export_filter_json(const struct vs_export *export);
/* "peak", "end", "oom" or the time. */
void vs_export_at_text(const struct vs_export *export, char *buffer, size_t bytes);
const char *vs_export_layer_name(unsigned layer);
const char *vs_export_metric_name(enum vs_export_metric metric);

#endif
