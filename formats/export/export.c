/* SPDX-License-Identifier: Apache-2.0 */
/* What all exports share: see export.h. */
#include "export.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "replay/format_size.h"
#include "replay/reader_facts.h"

enum { PROGRESS_EVENTS = 1 << 16 };

const struct vs_export_format *vs_export_format(const char *name)
{
    for (const struct vs_export_format *format = vs_export_formats; format->name != NULL; format++)
        if (strcmp(format->name, name) == 0)
            return format;
    return NULL;
}

/* ---- opening -------------------------------------------------------------------------------- */

struct span {
    uint64_t first_ns, last_ns;
    bool first_only;
};

static int note_time(void *self, const struct vs_sequenced_event *event)
{
    struct span *span = self;
    uint64_t time = event->event.time_ns;
    if (span->first_ns == 0)
        span->first_ns = time;
    if (time > span->last_ns)
        span->last_ns = time;
    return span->first_only;
}

/* Whether the last event's time has to be known: a time is said from it, or may lie behind it. */
static bool needs_end(const struct vs_export *export, uint64_t end_ns)
{
    const struct vs_window *window = &export->window;
    int64_t latest = export->at == VS_AT_TIME ? export->at_ns : 0;
    if (window->has_from && window->from_ns > latest)
        latest = window->from_ns;
    if (latest > 0 && (export->start_ns == 0 || export->start_ns + (uint64_t)latest > end_ns))
        return true;
    return (window->has_from && window->from_ns < 0) || (window->has_to && window->to_ns < 0) ||
           export->at_ns < 0;
}

/*
 * Where the trace's end has to be known, all events are read once more. -ERANGE with a line in
 * `error`.
 */
static int resolve_times(struct vs_export *export, struct vs_error *error)
{
    const struct vs_window *window = &export->window;
    export->start_ns = vs_fact_count(json_object_get(export->clock, "start"), "monotonic_ns");
    uint64_t last = vs_fact_count(export->end, "at_ns");
    bool reads_all = needs_end(export, last);
    struct span span = {.first_only = !reads_all};
    int result = 0;
    if (reads_all || export->start_ns == 0)
        result = vs_export_each(export, note_time, &span);
    if (export->start_ns == 0)
        export->start_ns = span.first_ns;
    if (span.last_ns > last)
        last = span.last_ns;
    uint64_t duration = last > export->start_ns ? last - export->start_ns : 0;
    uint64_t from, to;
    if (result == 0 && (result = vs_window_resolve(window, duration, &from, &to)) != 0)
        vs_window_error(export->path, from, duration, error);
    if (result != 0)
        return result;
    if (export->at == VS_AT_TIME && export->at_ns > 0 && (uint64_t) export->at_ns > duration) {
        snprintf(error->text, sizeof(error->text),
                 "%s: --at is after the run's end: the run took %s", export->path,
                 vs_format_time(duration).text);
        return -ERANGE;
    }
    export->from_ns = window->has_from ? export->start_ns + from : 0;
    export->to_ns = window->has_to ? export->start_ns + to : UINT64_MAX;
    export->moment_ns = export->start_ns + vs_window_bound(export->at_ns, duration);
    return 0;
}

/* Whether a moment lies in a gap of a cut trace. */
struct in_gap {
    uint64_t moment_ns;
    struct vs_gap gap;
};

static int find_gap(void *self, const struct vs_sequenced_event *sequenced)
{
    struct in_gap *in = self;
    const struct vs_event *event = &sequenced->event;
    if (event->kind != VS_KIND_CUT || in->moment_ns <= event->time_ns ||
        in->moment_ns >= event->extra[0])
        return 0;
    in->gap = (struct vs_gap){event->size, event->time_ns, event->extra[0]};
    return 1;
}

/* What was live in a gap is not known: -EDOM with a line in `error`. */
static int check_moment(struct vs_export *export, struct vs_error *error)
{
    struct in_gap in = {.moment_ns = export->moment_ns};
    if (export->at != VS_AT_TIME || vs_reader_status(export->reader)->cut_gaps == 0)
        return 0;
    int result = vs_export_each(export, find_gap, &in);
    if (result != 0 || in.gap.events == 0)
        return result;
    char text[160];
    vs_gap_text(&in.gap, export->start_ns, text, sizeof(text));
    snprintf(error->text, sizeof(error->text),
             "%s: what is live then is not known, %s are cut: ask for another time", export->path,
             text);
    return -EDOM;
}

int vs_export_open(struct vs_export *export, struct vs_error *error)
{
    int result = vs_reader_open(export->path, &export->reader, error);
    if (result != 0)
        return result;
    export->names = vs_reader_names(export->reader);
    export->process = vs_reader_fact(export->reader, "process");
    export->clock = vs_reader_fact(export->reader, "clock");
    export->hooks = vs_reader_fact(export->reader, "hooks");
    export->end = vs_reader_fact(export->reader, "end");
    export->error = error;
    result = resolve_times(export, error);
    if (result == 0)
        result = check_moment(export, error);
    if (result != 0 && result != -EDOM && result != -ERANGE) /* those have said why */
        snprintf(error->text, sizeof(error->text), "%s: %s while reading", export->path,
                 strerror(-result));
    return result;
}

void vs_export_close(struct vs_export *export)
{
    json_decref(export->process);
    json_decref(export->clock);
    json_decref(export->hooks);
    json_decref(export->end);
    vs_addresses_release(&export->left_out);
    if (export->reader != NULL)
        vs_reader_close(export->reader);
    export->reader = NULL;
}

/* ---- events -----------------------------------------------------------------------------------
 */

static void tell_progress(const struct vs_export *export, uint64_t done)
{
    if (export->progress != NULL)
        export->progress(export->progress_self, done, vs_reader_status(export->reader)->events);
}

int vs_export_each(struct vs_export *export, vs_export_take *take, void *self)
{
    const struct vs_sequenced_event *events;
    size_t count;
    uint64_t done = 0, told = 0;
    int got, result = 0;
    vs_reader_rewind(export->reader);
    export->read_error = 0;
    while (result == 0 && (got = vs_reader_next_block(export->reader, &events, &count)) != 0) {
        if (got < 0) {
            export->read_error = got;
            break;
        }
        for (size_t i = 0; i < count && result == 0; i++)
            result = take(self, &events[i]);
        if (export->sink != NULL && export->sink->error != 0)
            result = export->sink->error;
        done += count;
        if (done - told >= PROGRESS_EVENTS)
            tell_progress(export, told = done);
    }
    return result < 0 ? result : 0;
}

/* ---- filters ------------------------------------------------------------------------------------
 */

static bool has_bytes(unsigned kind)
{
    switch (kind) {
    case VS_KIND_ALLOC:
    case VS_KIND_POOL_ALLOC:
    case VS_KIND_PHYS_CREATE:
    case VS_KIND_HOST_ALLOC:
    case VS_KIND_HOST_REGISTER:
    case VS_KIND_ARRAY_CREATE:
    case VS_KIND_GRAPH_ALLOC_NODE:
    case VS_KIND_MAP:
    case VS_KIND_UNMAP:
    case VS_KIND_RESERVE:
    case VS_KIND_UNRESERVE:
    case VS_KIND_FW_ALLOC:
    case VS_KIND_FW_FREE:
    case VS_KIND_FW_OOM:
    case VS_KIND_FW_HOST_ALLOC:
    case VS_KIND_FW_HOST_FREE:
        return true;
    default:
        return false;
    }
}

/* What is freed by an event that does not say how much it frees, and such events. */
static bool freed_without_size(unsigned kind)
{
    return kind == VS_KIND_ALLOC || kind == VS_KIND_POOL_ALLOC || kind == VS_KIND_HOST_ALLOC ||
           kind == VS_KIND_HOST_REGISTER || kind == VS_KIND_ARRAY_CREATE ||
           kind == VS_KIND_PHYS_CREATE;
}

static bool frees_without_size(unsigned kind)
{
    return kind == VS_KIND_FREE || kind == VS_KIND_POOL_FREE || kind == VS_KIND_HOST_FREE ||
           kind == VS_KIND_HOST_UNREGISTER || kind == VS_KIND_ARRAY_DESTROY ||
           kind == VS_KIND_PHYS_RELEASE;
}

/* Arrays and physical memory are known by handle. */
static uint64_t name_of(const struct vs_event *event)
{
    return event->address != 0 ? event->address : event->handle;
}

/* 1 large enough, 0 not, -ENOMEM. */
static int is_large(struct vs_export *export, const struct vs_event *event)
{
    if (has_bytes(event->kind)) {
        bool large = event->size >= export->min_bytes;
        if (!large && freed_without_size(event->kind) && event->result == 0 &&
            vs_addresses_put(&export->left_out, name_of(event)) == NULL)
            return -ENOMEM;
        return large;
    }
    return !frees_without_size(event->kind) ||
           !vs_addresses_remove(&export->left_out, name_of(event));
}

static bool passes(const struct vs_export *export, const struct vs_event *event)
{
    return event->time_ns >= export->from_ns && event->time_ns <= export->to_ns &&
           (export->device < 0 || event->device < 0 || event->device == export->device);
}

struct choosing {
    struct vs_export *export;
    vs_export_take *take;
    void *self;
    uint64_t skip;
};

static int count_one(void *self, const struct vs_sequenced_event *event)
{
    (void)event;
    ++*(uint64_t *)self;
    return 0;
}

static int choose(void *self, const struct vs_sequenced_event *event)
{
    struct choosing *choosing = self;
    struct vs_export *export = choosing->export;
    if (export->min_bytes != 0) {
        int large = is_large(export, &event->event);
        if (large <= 0)
            return large;
    }
    if (!passes(export, &event->event))
        return 0;
    if (choosing->skip != 0) {
        choosing->skip--;
        return 0;
    }
    return choosing->take(choosing->self, event);
}

static int each_chosen(struct vs_export *export, vs_export_take *take, void *self, uint64_t skip)
{
    struct choosing choosing = {export, take, self, skip};
    vs_addresses_release(&export->left_out);
    return vs_export_each(export, choose, &choosing);
}

int vs_export_each_chosen(struct vs_export *export, vs_export_take *take, void *self)
{
    uint64_t count = 0;
    int result = 0;
    if (export->last != 0)
        result = each_chosen(export, count_one, &count, 0);
    if (result != 0)
        return result;
    return each_chosen(export, take, self,
                       export->last != 0 && count > export->last ? count - export->last : 0);
}

/* ---- state --------------------------------------------------------------------------------------
 */

int vs_export_state(const struct vs_export *export, struct vs_state **out)
{
    int result = vs_state_create(&export->names, out);
    if (result == 0)
        result = vs_reader_prepare(export->reader, *out);
    if (result != 0)
        return result;
    (*out)->start_ns = export->start_ns;
    return 0;
}

bool vs_export_is_oom(const struct vs_export *export, const struct vs_event *event)
{
    char buffer[32];
    if (event->kind == VS_KIND_FW_OOM)
        return true;
    if (event->result == 0)
        return false;
    uint32_t call = event->label != 0 ? event->label : event->call;
    const char *name = call == 0 ? NULL : vs_reader_string(export->reader, call);
    const char *error =
        vs_cuda_error_name(name == NULL ? "" : name, event->result, buffer, sizeof(buffer));
    return strcmp(error, "CUDA_ERROR_OUT_OF_MEMORY") == 0 ||
           strcmp(error, "cudaErrorMemoryAllocation") == 0;
}

struct oom_search {
    struct vs_export *export;
    uint64_t framework, any; /* the last ones; 0 none */
};

static int look_for_oom(void *self, const struct vs_sequenced_event *event)
{
    struct oom_search *search = self;
    const struct vs_export *export = search->export;
    if ((event->event.kind != VS_KIND_FW_OOM && event->event.result == 0) ||
        !passes(export, &event->event) || !vs_export_is_oom(export, &event->event))
        return 0;
    if (event->event.kind == VS_KIND_FW_OOM)
        search->framework = event->sequence;
    search->any = event->sequence;
    return 0;
}

int vs_export_find_oom(struct vs_export *export, uint64_t *sequence)
{
    struct oom_search search = {.export = export};
    int result = vs_export_each(export, look_for_oom, &search);
    *sequence = search.framework != 0 ? search.framework : search.any;
    return result != 0 ? result : *sequence == 0 ? -ENODATA : 0;
}

/* ---- what is said in the output ------------------------------------------------------------- */

static size_t add(char *buffer, size_t bytes, size_t used, const char *name, const char *format,
                  ...) __attribute__((format(printf, 5, 6)));

static size_t add(char *buffer, size_t bytes, size_t used, const char *name, const char *format,
                  ...)
{
    char value[64];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(value, sizeof(value), format, arguments);
    va_end(arguments);
    int length = snprintf(buffer + used, bytes - used, "%s%s%s", used > 0 ? ", " : "", name, value);
    return length < 0 || (size_t)length >= bytes - used ? used : used + (size_t)length;
}

int vs_export_refuse(const struct vs_export *export, const char *why)
{
    snprintf(export->error->text, sizeof(export->error->text), "%s: %s", export->path, why);
    return -ENOTSUP;
}

int vs_export_refuse_last(const struct vs_export *export)
{
    return vs_export_refuse(export, "--last is for formats that list events; use --from");
}

void vs_export_filter_text(const struct vs_export *export, char *buffer, size_t bytes)
{
    const struct vs_window *window = &export->window;
    size_t used = 0;
    buffer[0] = 0;
    if (window->has_from)
        used = add(buffer, bytes, used, "from ", "%" PRIu64 " ns",
                   vs_export_since(export, export->from_ns));
    if (window->has_to)
        used = add(buffer, bytes, used, "to ", "%" PRIu64 " ns",
                   vs_export_since(export, export->to_ns));
    if (export->device >= 0)
        used = add(buffer, bytes, used, "device ", "%d", export->device);
    if (export->min_bytes != 0)
        used = add(buffer, bytes, used, "at least ", "%" PRIu64 " bytes", export->min_bytes);
    if (export->last != 0)
        used = add(buffer, bytes, used, "the last ", "%" PRIu64 " events", export->last);
    if (vs_reader_status(export->reader)->cut_gaps != 0)
        add(buffer, bytes, used, "of a cut trace, ", "without %" PRIu64 " events",
            vs_reader_status(export->reader)->cut_events);
}

static void set_number(json_t *object, const char *name, uint64_t value)
{
    json_object_set_new(object, name, json_integer((json_int_t)value));
}

json_t *vs_export_filter_json(const struct vs_export *export)
{
    json_t *object = json_object();
    if (export->window.has_from)
        set_number(object, "from_ns", vs_export_since(export, export->from_ns));
    if (export->window.has_to)
        set_number(object, "to_ns", vs_export_since(export, export->to_ns));
    if (export->device >= 0)
        set_number(object, "device", (uint64_t) export->device);
    if (export->min_bytes != 0)
        set_number(object, "min_bytes", export->min_bytes);
    if (export->last != 0)
        set_number(object, "last", export->last);
    if (vs_reader_status(export->reader)->cut_gaps != 0)
        set_number(object, "events_cut", vs_reader_status(export->reader)->cut_events);
    return object;
}

void vs_export_at_text(const struct vs_export *export, char *buffer, size_t bytes)
{
    static const char *const names[] = {
        [VS_AT_PEAK] = "peak", [VS_AT_END] = "end", [VS_AT_OOM] = "oom"};
    if (export->at == VS_AT_TIME)
        snprintf(buffer, bytes, "%" PRIu64 " ns", vs_export_since(export, export->moment_ns));
    else
        snprintf(buffer, bytes, "%s", names[export->at]);
}

const char *vs_export_layer_name(unsigned layer)
{
    return layer == VS_LAYER_FRAMEWORK ? "framework" : layer == VS_LAYER_DRIVER ? "driver" : "host";
}

const char *vs_export_metric_name(enum vs_export_metric metric)
{
    static const char *const names[VS_METRICS] = {
        [VS_METRIC_INUSE_SPACE] = "inuse_space",
        [VS_METRIC_INUSE_OBJECTS] = "inuse_objects",
        [VS_METRIC_ALLOC_SPACE] = "alloc_space",
        [VS_METRIC_ALLOC_OBJECTS] = "alloc_objects",
    };
    return names[metric];
}
