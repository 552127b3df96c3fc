/* SPDX-License-Identifier: Apache-2.0 */
/* Reads one trace through the fold with every analysis subscribed. */
#include "summary.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format_size.h"
#include "reader_facts.h"

static int first_error(const int *results, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (results[i] != 0)
            return results[i];
    return 0;
}

/* What follows the state, and so needs every event. */
static int start_analyses(struct vs_summary *summary, vs_timeline_row *row, void *row_self)
{
    struct vs_state *state = summary->state;
    int results[] = {
        vs_peaks_start(&summary->peaks, state),
        vs_sites_start(&summary->sites, state),
        vs_objects_start(&summary->objects, state),
        vs_phases_start(&summary->phases, state),
        vs_lives_start(&summary->lives, state, &summary->growth),
        vs_losses_start(&summary->losses, state),
        vs_cuts_start(&summary->cuts, state),
        vs_growth_start(&summary->growth, state, &summary->objects),
        vs_lifetimes_start(&summary->lifetimes, state, &summary->growth),
        vs_churn_start(&summary->churn, state, &summary->growth),
        vs_dwells_start(&summary->dwells, state),
        vs_invariants_start(&summary->invariants, state),
        vs_timeline_start(&summary->timeline, state, row, row_self),
    };
    return first_error(results, sizeof(results) / sizeof(results[0]));
}

/* What counts events: those of the window. */
static int start_counting(struct vs_summary *summary)
{
    struct vs_state *state = summary->state;
    int results[] = {
        vs_ooms_start(&summary->ooms, state),
        vs_fragmentations_start(&summary->fragmentations, state),
        vs_failures_start(&summary->failures, state),
        vs_slow_calls_start(&summary->slow_calls, state),
    };
    return first_error(results, sizeof(results) / sizeof(results[0]));
}

/* ---- events ---------------------------------------------------------------------------- */

/* Calls `take` for every event; stops where it gives something else than 0. */
static int each_event(struct vs_summary *summary,
                      int (*take)(struct vs_summary *summary,
                                  const struct vs_sequenced_event *event))
{
    const struct vs_sequenced_event *events;
    size_t count;
    int got, result = 0;
    while (result == 0 && (got = vs_reader_next_block(summary->reader, &events, &count)) != 0) {
        if (got < 0) {
            summary->read_error = got;
            break;
        }
        for (size_t i = 0; i < count && result == 0; i++)
            result = take(summary, &events[i]);
    }
    return result;
}

static int fold_event(struct vs_summary *summary, const struct vs_sequenced_event *event)
{
    return vs_state_event(summary->state, event);
}

static int note_time(struct vs_summary *summary, const struct vs_sequenced_event *event)
{
    uint64_t time = event->event.time_ns;
    if (summary->start_ns == 0)
        summary->start_ns = time;
    if (time > summary->last_ns)
        summary->last_ns = time;
    return 0;
}

/* ---- a window --------------------------------------------------------------------------- */

uint64_t vs_window_bound(int64_t bound_ns, uint64_t duration_ns)
{
    if (bound_ns >= 0)
        return (uint64_t)bound_ns;
    uint64_t back = (uint64_t)-bound_ns;
    return back < duration_ns ? duration_ns - back : 0;
}

int vs_window_resolve(const struct vs_window *window, uint64_t duration_ns, uint64_t *from_ns,
                      uint64_t *to_ns)
{
    *from_ns = window->has_from ? vs_window_bound(window->from_ns, duration_ns) : 0;
    *to_ns = window->has_to ? vs_window_bound(window->to_ns, duration_ns) : duration_ns;
    return *from_ns <= *to_ns && *from_ns <= duration_ns ? 0 : -ERANGE;
}

void vs_window_error(const char *path, uint64_t from_ns, uint64_t duration_ns,
                     struct vs_error *error)
{
    if (from_ns > duration_ns)
        snprintf(error->text, sizeof(error->text),
                 "%s: the window begins after the run's end: the run took %s", path,
                 vs_format_time(duration_ns).text);
    else
        snprintf(error->text, sizeof(error->text), "%s: the window ends before it begins", path);
}

int vs_summary_stretch(const struct vs_summary *summary, const struct vs_window *window,
                       uint64_t *from_ns, uint64_t *to_ns)
{
    int result = vs_window_resolve(window, summary->duration_ns, from_ns, to_ns);
    *from_ns += summary->start_ns;
    *to_ns += summary->start_ns;
    return result;
}

/* Reads all times first: a window may be said from the trace's end. */
static int resolve_window(struct vs_summary *summary, const struct vs_window *window)
{
    summary->start_ns = summary->state->start_ns;
    summary->last_ns = vs_fact_count(summary->end, "at_ns");
    each_event(summary, note_time);
    vs_reader_rewind(summary->reader);
    summary->read_error = 0;
    /* That of the whole run, until the window is read. */
    summary->duration_ns =
        summary->last_ns > summary->start_ns ? summary->last_ns - summary->start_ns : 0;
    summary->windowed = true;
    return vs_window_resolve(window, summary->duration_ns, &summary->from_ns, &summary->to_ns);
}

static int begin_window(struct vs_summary *summary)
{
    summary->begun = true;
    if (summary->from_ns != 0) {
        vs_state_restart_peaks(summary->state, summary->start_ns + summary->from_ns);
        vs_sites_restart(&summary->sites);
        vs_growth_restart(&summary->growth);
        vs_dwells_restart(&summary->dwells, summary->start_ns + summary->from_ns);
    }
    return start_counting(summary);
}

static int fold_in_window(struct vs_summary *summary, const struct vs_sequenced_event *event)
{
    uint64_t time = event->event.time_ns;
    int result = 0;
    if (!summary->over && time > summary->start_ns + summary->to_ns)
        summary->over = true;
    if (!summary->begun && time >= summary->start_ns + summary->from_ns)
        result = begin_window(summary);
    if (result != 0)
        return result;
    if (!summary->over)
        return vs_state_event(summary->state, event);
    vs_ooms_outcome(&summary->ooms, event);
    return summary->ooms.error;
}

static int fold_events(struct vs_summary *summary, const struct vs_window *window)
{
    int result = window == NULL ? start_counting(summary) : resolve_window(summary, window);
    if (result == 0)
        result = each_event(summary, window == NULL ? fold_event : fold_in_window);
    if (result == 0 && window != NULL && !summary->begun)
        result = begin_window(summary);
    return result;
}

/* ---- how it ended -------------------------------------------------------------------- */

static void take_end(struct vs_summary *summary)
{
    const char *ended = json_string_value(json_object_get(summary->end, "ended"));
    const json_t *exit_code = json_object_get(summary->end, "exit_code");
    const json_t *signal = json_object_get(summary->end, "signal");
    summary->ended = "unknown";
    for (const char *const *name = (const char *const[]){"exit", "killed", "exec", NULL};
         *name != NULL && ended != NULL; name++)
        if (strcmp(ended, *name) == 0)
            summary->ended = *name;
    summary->exit_code_known = json_is_integer(exit_code);
    summary->signal_known = json_is_integer(signal);
    summary->exit_code = (int)json_integer_value(exit_code);
    summary->signal = (int)json_integer_value(signal);
}

static bool is_whole(const struct vs_summary *summary)
{
    const struct vs_trace_status *status = &summary->status;
    return vs_trace_is_sound(status) && status->sequence_gaps == 0 && summary->read_error == 0;
}

static void take_times(struct vs_summary *summary)
{
    const struct vs_state *state = summary->state;
    uint64_t end = vs_fact_count(summary->end, "at_ns");
    if (end < state->last_time_ns)
        end = state->last_time_ns;
    if (end < summary->last_ns)
        end = summary->last_ns;
    summary->start_ns = state->start_ns;
    summary->duration_ns = end > state->start_ns ? end - state->start_ns : 0;
}

static int finish(struct vs_summary *summary)
{
    const struct vs_state *state = summary->state;
    summary->status = *vs_reader_status(summary->reader);
    take_end(summary);
    take_times(summary);
    summary->lost = state->counts.lost_events;
    summary->torn = state->counts.torn;
    summary->complete =
        json_is_true(json_object_get(summary->end, "complete")) && is_whole(summary);
    int result = vs_ooms_finish(&summary->ooms, vs_fact_ended_well(summary->end));
    vs_oom_explain_limits(summary);
    vs_fragmentations_finish(&summary->fragmentations, state);
    vs_slow_calls_finish(&summary->slow_calls);
    vs_churn_finish(&summary->churn);
    vs_phases_finish(&summary->phases, state);
    vs_timeline_finish(&summary->timeline, state);
    vs_dwells_finish(&summary->dwells, summary->windowed
                                           ? summary->start_ns + summary->to_ns
                                           : summary->start_ns + summary->duration_ns);
    int sites = vs_sites_finish(&summary->sites, state);
    int errors[] = {result,
                    sites,
                    state->error,
                    summary->fragmentations.error,
                    summary->failures.error,
                    summary->objects.error,
                    summary->slow_calls.error,
                    summary->phases.error,
                    summary->timeline.error,
                    summary->lives.error,
                    summary->losses.error,
                    summary->cuts.error,
                    summary->growth.error,
                    summary->lifetimes.error,
                    summary->churn.error,
                    summary->dwells.error};
    return first_error(errors, sizeof(errors) / sizeof(errors[0]));
}

/* ---- public ---------------------------------------------------------------------------- */

struct request {
    const char *path;
    vs_timeline_row *row;
    void *row_self;
    const struct vs_window *window; /* NULL: all */
};

static int load(struct vs_summary *summary, const struct request *request, struct vs_error *error)
{
    const char *path = request->path;
    int result = vs_reader_open(path, &summary->reader, error);
    if (result != 0)
        return result;
    struct vs_names names = vs_reader_names(summary->reader);
    summary->process = vs_reader_fact(summary->reader, "process");
    summary->clock = vs_reader_fact(summary->reader, "clock");
    summary->hooks = vs_reader_fact(summary->reader, "hooks");
    summary->others = vs_reader_fact(summary->reader, "others");
    summary->end = vs_reader_fact(summary->reader, "end");
    result = vs_state_create(&names, &summary->state);
    if (result == 0)
        result = start_analyses(summary, request->row, request->row_self);
    if (result == 0)
        result = vs_reader_prepare(summary->reader, summary->state);
    if (result == 0)
        result = fold_events(summary, request->window);
    if (result == 0)
        result = finish(summary);
    if (result == -ERANGE)
        vs_window_error(path, summary->from_ns, summary->duration_ns, error);
    else if (result != 0)
        snprintf(error->text, sizeof(error->text), "%s: %s while reading", path, strerror(-result));
    return result;
}

static int load_new(const struct request *request, struct vs_summary **out, struct vs_error *error)
{
    struct vs_summary *summary = calloc(1, sizeof(*summary));
    if (summary == NULL) {
        snprintf(error->text, sizeof(error->text), "%s: not enough memory", request->path);
        return -ENOMEM;
    }
    int result = load(summary, request, error);
    if (result != 0) {
        vs_summary_free(summary);
        return result;
    }
    *out = summary;
    return 0;
}

int vs_summary_load(const char *path, vs_timeline_row *row, void *row_self, struct vs_summary **out,
                    struct vs_error *error)
{
    struct request request = {.path = path, .row = row, .row_self = row_self};
    return load_new(&request, out, error);
}

int vs_summary_load_window(const char *path, const struct vs_window *window,
                           struct vs_summary **out, struct vs_error *error)
{
    return vs_summary_load_rows(path, window, NULL, NULL, out, error);
}

int vs_summary_load_rows(const char *path, const struct vs_window *window, vs_timeline_row *row,
                         void *row_self, struct vs_summary **out, struct vs_error *error)
{
    struct request request = {.path = path, .row = row, .row_self = row_self, .window = window};
    return load_new(&request, out, error);
}

void vs_summary_free(struct vs_summary *summary)
{
    if (summary == NULL)
        return;
    vs_peaks_release(&summary->peaks);
    vs_sites_release(&summary->sites);
    vs_ooms_release(&summary->ooms);
    vs_siblings_release(&summary->siblings);
    vs_fragmentations_release(&summary->fragmentations);
    vs_failures_release(&summary->failures);
    vs_objects_release(&summary->objects);
    vs_slow_calls_release(&summary->slow_calls);
    vs_phases_release(&summary->phases);
    vs_timeline_release(&summary->timeline);
    vs_lives_release(&summary->lives);
    vs_losses_release(&summary->losses);
    vs_cuts_release(&summary->cuts);
    vs_growth_release(&summary->growth);
    vs_lifetimes_release(&summary->lifetimes);
    vs_churn_release(&summary->churn);
    vs_dwells_release(&summary->dwells);
    vs_state_destroy(summary->state);
    json_decref(summary->process);
    json_decref(summary->clock);
    json_decref(summary->hooks);
    json_decref(summary->others);
    json_decref(summary->end);
    if (summary->reader != NULL)
        vs_reader_close(summary->reader);
    free(summary);
}

uint64_t vs_summary_at(const struct vs_summary *summary, uint64_t time_ns)
{
    return time_ns > summary->start_ns ? time_ns - summary->start_ns : 0;
}

bool vs_summary_ended_badly(const struct vs_summary *summary)
{
    return strcmp(summary->ended, "killed") == 0 ||
           (strcmp(summary->ended, "exit") == 0 && summary->exit_code_known &&
            summary->exit_code != 0);
}

const struct vs_oom *vs_summary_fatal_oom(const struct vs_summary *summary)
{
    for (size_t i = summary->ooms.count; i-- > 0;)
        if (!summary->ooms.items[i].handled)
            return &summary->ooms.items[i];
    return NULL;
}

const struct vs_device_def *vs_summary_device_def(const struct vs_summary *summary, int device)
{
    for (size_t i = 0; i < vs_reader_device_count(summary->reader); i++) {
        const struct vs_device_def *known = vs_reader_device(summary->reader, i);
        if (known->device == device)
            return known;
    }
    return NULL;
}
