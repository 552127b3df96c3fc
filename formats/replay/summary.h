/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One trace, read once and analysed: what report, verify and timeline work from.
 */
#ifndef VS_REPLAY_SUMMARY_H
#define VS_REPLAY_SUMMARY_H

#include <jansson.h>

#include "analysis.h"
#include "checks.h"
#include "churn.h"
#include "dwell.h"
#include "fragmentation.h"
#include "growth.h"
#include "lifetimes.h"
#include "siblings.h"
#include "trace.h"

/* A stretch of a run. Times since the trace's beginning; below zero: before its end. */
struct vs_window {
    bool has_from, has_to;
    int64_t from_ns, to_ns;
};

/* A bound of a window, as time since the beginning of a run that took `duration_ns`. */
uint64_t vs_window_bound(int64_t bound_ns, uint64_t duration_ns);
/*
 * Both bounds, as above; one that is not given is the run's own. -ERANGE: the window ends before
 * it begins, or begins after the run; vs_window_error has the line for it.
 */
int vs_window_resolve(const struct vs_window *window, uint64_t duration_ns, uint64_t *from_ns,
                      uint64_t *to_ns);
void vs_window_error(const char *path, uint64_t from_ns, uint64_t duration_ns,
                     struct vs_error *error);

struct vs_summary {
    struct vs_reader *reader;
    struct vs_trace_status status;
    struct vs_state *state;
    json_t *process, *clock, *hooks, *others,
        *end; /* never NULL; empty objects when the trace has none */

    struct vs_peaks peaks;
    struct vs_sites sites;
    struct vs_ooms ooms;
    struct vs_siblings siblings; /* of the failed requests; empty until they are looked into */
    struct vs_fragmentations fragmentations;
    struct vs_failures failures;
    struct vs_objects objects;
    struct vs_slow_calls slow_calls;
    struct vs_phases phases;
    struct vs_lives lives;
    struct vs_timeline timeline;
    struct vs_losses losses;
    struct vs_cuts cuts;
    struct vs_growth growth;
    struct vs_lifetimes lifetimes;
    struct vs_churn churn;
    struct vs_dwells dwells;
    struct vs_invariants invariants;

    uint64_t start_ns; /* monotonic time of the trace's beginning */
    uint64_t duration_ns;
    bool windowed;
    uint64_t from_ns, to_ns; /* of the window, since the beginning */
    uint64_t last_ns;        /* windowed: of the last event or the end, monotonic */
    bool begun, over;        /* the window, while reading */
    uint64_t lost, torn;
    const char *ended; /* "exit", "killed", "exec", "unknown" */
    bool exit_code_known, signal_known;
    int exit_code, signal;
    bool complete;  /* the process told its own end and nothing is damaged */
    int read_error; /* of the reader, after which there are no more events; 0 none */
};

/*
 * Reads the whole trace. `row` (may be NULL) gets every change of a device's
 * bands while the events pass. Returns 0 even for a damaged trace: what is
 * readable is there and the status says what is not. Negative errno and a line
 * in `error` when nothing can be read.
 */
int vs_summary_load(const char *path, vs_timeline_row *row, void *row_self, struct vs_summary **out,
                    struct vs_error *error);
/*
 * The same for a stretch of the run: peaks are those within it, live is what was
 * at its end, calls and failures count within it; objects, phases and losses are
 * counted from the beginning. -ERANGE: the window ends before it begins, or begins
 * after the run.
 */
int vs_summary_load_window(const char *path, const struct vs_window *window,
                           struct vs_summary **out, struct vs_error *error);
/*
 * Both: a stretch, or all with `window` NULL; `row` gets the changes before the
 * stretch too.
 */
int vs_summary_load_rows(const char *path, const struct vs_window *window, vs_timeline_row *row,
                         void *row_self, struct vs_summary **out, struct vs_error *error);
void vs_summary_free(struct vs_summary *summary);

/*
 * A window in a trace that was read whole, in monotonic time. -ERANGE: it ends before it begins, or
 * begins after the run.
 */
int vs_summary_stretch(const struct vs_summary *summary, const struct vs_window *window,
                       uint64_t *from_ns, uint64_t *to_ns);

/* Time since the trace's beginning. */
uint64_t vs_summary_at(const struct vs_summary *summary, uint64_t time_ns);

/* True when the process ended by an error: a signal, or a status that is not 0. */
bool vs_summary_ended_badly(const struct vs_summary *summary);
/* The last out of memory that the process did not survive, or NULL. */
const struct vs_oom *vs_summary_fatal_oom(const struct vs_summary *summary);
/* oom_limit.c: class and reason of the failures that a setting of the process explains. */
void vs_oom_explain_limits(struct vs_summary *summary);
/* Reader's definition of a device, or NULL. */
const struct vs_device_def *vs_summary_device_def(const struct vs_summary *summary, int device);

#endif
