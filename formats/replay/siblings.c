/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the traces of other processes for what they held when a request failed: siblings.h. */
#include "siblings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frames.h"
#include "grow.h"
#include "layers.h"
#include "places.h"
#include "reader_facts.h"
#include "segments.h"
#include "summary.h"
#include "trace.h"

/* Walking the live blocks for every failure of a long run must stay affordable. */
#define WALK_LIMIT 20000000ULL
/* What others hold is asked for from so many bytes, and from one in so many, of a peak. */
#define FOREIGN_LEAST (32LL << 20)
#define FOREIGN_SHARE 16
/* NVML's first answer, about once a second, tells what of a context's difference was others'. */
#define ANSWERED_WITHIN_NS 2000000000ULL

bool vs_siblings_concern(const struct vs_oom *oom)
{
    return oom->device >= 0 && oom->layer != VS_LAYER_HOST && oom->class != VS_OOM_FOLLOW_UP &&
           oom->class != VS_OOM_ADDRESS_SPACE && oom->class != VS_OOM_MULTICAST &&
           oom->class != VS_OOM_LIMIT && oom->class != VS_OOM_REQUEST_EXCEEDS_DEVICE;
}

static bool has_uuid(const struct vs_device_def *device)
{
    static const uint8_t none[sizeof(device->uuid)];
    return device != NULL && memcmp(device->uuid, none, sizeof(none)) != 0;
}

/* What was in use at a device's highest, and is not certain to be this process's. */
static int64_t foreign_bytes(const struct vs_summary *summary, const struct vs_device_state *device)
{
    const struct vs_bands *bands = vs_peaks_used(&summary->peaks, device);
    if (bands == NULL || !has_uuid(vs_summary_device_def(summary, device->device)))
        return 0;
    int64_t implicit = 0, bytes = bands->other_process;
    for (int i = 0; i < VS_IMPLICITS; i++)
        implicit += bands->implicit[i];
    bytes += implicit < bands->implicit_uncertainty ? implicit : bands->implicit_uncertainty;
    bytes += bands->unexplained > 0 ? bands->unexplained : 0;
    return bytes >= FOREIGN_LEAST && bytes >= device->used_peak / FOREIGN_SHARE ? bytes : 0;
}

struct vs_sibling_peak vs_siblings_peak(const struct vs_summary *summary)
{
    struct vs_sibling_peak peak = {.device = -1};
    int64_t most = 0;
    for (size_t i = 0; i < VS_DEVICE_SLOTS && vs_summary_fatal_oom(summary) == NULL; i++) {
        const struct vs_device_state *device = summary->state->devices[i];
        if (device == NULL || device->device < 0 || !device->measured)
            continue;
        int64_t bytes = foreign_bytes(summary, device);
        if (bytes > most) {
            most = bytes;
            peak = (struct vs_sibling_peak){device->device, device->used_peak_ns};
        }
    }
    return peak;
}

bool vs_siblings_wanted(const struct vs_summary *summary)
{
    if (vs_fact_text(summary->process, "boot_id")[0] == 0)
        return false;
    if (vs_siblings_peak(summary).device >= 0)
        return true;
    for (size_t i = 0; i < summary->ooms.count; i++) {
        const struct vs_oom *oom = &summary->ooms.items[i];
        if (vs_siblings_concern(oom) && has_uuid(vs_summary_device_def(summary, oom->device)))
            return true;
    }
    return false;
}

/* ---- one trace ------------------------------------------------------------------------- */

/* A moment that a trace is asked about; those of one trace are in order of time. */
struct question {
    uint64_t time_ns;
    size_t use;     /* place of the failure in the summary, or behind all of them: the peak */
    int16_t device; /* of the sibling */
    int64_t context_of_others; /* what had been taken off the context by then */
};

struct looking {
    const struct vs_summary *summary;
    struct vs_reader *reader;
    struct vs_state *state;
    json_t *process, *clock, *end;
    uint64_t start_ns, end_ns; /* of the process; `end_ns` UINT64_MAX: not known */
    bool itself;               /* a copy of the trace that asks */
    struct question *questions;
    size_t question_count;
    uint64_t walked_blocks;
    struct vs_sibling sibling;
};

/* The sibling's number for a device of the summary; INT16_MIN none. */
static int16_t same_device(const struct looking *looking, int device)
{
    const struct vs_device_def *wanted = vs_summary_device_def(looking->summary, device);
    for (size_t i = 0; has_uuid(wanted) && i < vs_reader_device_count(looking->reader); i++) {
        const struct vs_device_def *found = vs_reader_device(looking->reader, i);
        if (found->device >= 0 && found->device <= INT8_MAX &&
            memcmp(found->uuid, wanted->uuid, sizeof(found->uuid)) == 0 &&
            memcmp(found->mig_uuid, wanted->mig_uuid, sizeof(found->mig_uuid)) == 0)
            return (int16_t)found->device;
    }
    return INT16_MIN;
}

static int by_time(const void *a, const void *b)
{
    const struct question *left = a, *right = b;
    return (left->time_ns > right->time_ns) - (left->time_ns < right->time_ns);
}

static void ask(struct looking *looking, uint64_t time_ns, size_t use, int device)
{
    if (time_ns < looking->start_ns || time_ns > looking->end_ns)
        return;
    struct question question = {
        .time_ns = time_ns, .use = use, .device = same_device(looking, device)};
    if (question.device >= 0)
        looking->questions[looking->question_count++] = question;
}

static int find_questions(struct looking *looking)
{
    const struct vs_ooms *ooms = &looking->summary->ooms;
    struct vs_sibling_peak peak = vs_siblings_peak(looking->summary);
    looking->questions = calloc(ooms->count + 1, sizeof(*looking->questions));
    if (looking->questions == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < ooms->count; i++)
        if (vs_siblings_concern(&ooms->items[i]))
            ask(looking, ooms->items[i].time_ns, i, ooms->items[i].device);
    if (peak.device >= 0)
        ask(looking, peak.time_ns, ooms->count, peak.device);
    qsort(looking->questions, looking->question_count, sizeof(*looking->questions), by_time);
    return 0;
}

/* Free segments that its framework can give back: those of graphs stay with their graphs. */
static void take_releasable(struct looking *looking, const struct vs_device_state *device,
                            struct vs_sibling_use *use)
{
    struct vs_layout layout = {0};
    looking->walked_blocks += looking->state->blocks.count;
    if (looking->walked_blocks <= WALK_LIMIT &&
        vs_layout_take(looking->state, device, &layout) == 0 && layout.known) {
        use->releasable_known = true;
        for (size_t i = 0; i < layout.count; i++)
            if (layout.segments[i].pool < VS_CACHE_POOL_PRIVATE)
                use->releasable += layout.segments[i].releasable_bytes;
    }
    vs_layout_release(&layout);
}

static bool copy(const char *text, char **out)
{
    *out = text == NULL ? NULL : strdup(text);
    return text == NULL || *out != NULL;
}

/* Which line made the context of a device. 0 or -ENOMEM. */
static int find_context(struct looking *looking, const struct vs_device_state *device)
{
    const struct vs_site *site = vs_state_site(looking->state, device->context_site);
    struct vs_sibling_line *line = &looking->sibling.context;
    struct vs_frames *frames = NULL;
    const struct vs_frame *stack;
    if (site == NULL || site->stack == 0)
        return 0;
    int result = vs_frames_new(looking->reader, &frames);
    long count = result != 0 ? result : vs_frames_of(frames, site->stack, &stack);
    long named = count > 0 ? vs_places_frame(stack, (size_t)count) : -1;
    if (named >= 0) {
        line->line = stack[named].line;
        line->python = stack[named].kind == VS_FRAME_PYTHON;
        if (!copy(stack[named].file, &line->file) || !copy(stack[named].module, &line->module) ||
            !copy(stack[named].function, &line->function))
            count = -ENOMEM;
    }
    vs_frames_free(frames);
    return count < 0 ? (int)count : 0;
}

static void answer(struct looking *looking, struct question *question)
{
    const struct vs_device_state *device = vs_state_device(looking->state, question->device);
    struct vs_sibling_use *use = &looking->sibling.use[question->use];
    struct vs_bands bands;
    if (device == NULL)
        return;
    vs_state_bands(looking->state, device, &bands);
    question->context_of_others = bands.context_of_others;
    int64_t implicit = 0;
    for (int i = 0; i < VS_IMPLICITS; i++)
        implicit += bands.implicit[i];
    use->uncertain = implicit < bands.implicit_uncertainty ? implicit : bands.implicit_uncertainty;
    use->implicit = implicit - use->uncertain;
    use->device_bytes = bands.backed + bands.direct + use->implicit;
    use->there = use->device_bytes != 0 || device->framework_seen;
    use->framework = device->framework_seen;
    if (!use->framework)
        return;
    use->allocated = bands.allocated;
    use->reserved = bands.reserved;
    const struct vs_caching_layer *layer = device->caching_layer;
    if (layer == NULL)
        layer = vs_layer_of_library(vs_state_owner_name(looking->state, device->framework_owner));
    if (layer != NULL)
        use->give_back = layer->give_back;
    take_releasable(looking, device, use);
}

/* What was before a trace that lost its beginning is not known: the first question it answers. */
static size_t first_answered(const struct looking *looking, uint64_t begin_ns)
{
    size_t next = 0;
    while (next < looking->question_count && looking->questions[next].time_ns < begin_ns)
        next++;
    return next;
}

/* What NVML said only after a moment was not the context's then. */
static void settle(struct looking *looking, const struct question *question)
{
    const struct vs_device_state *device = vs_state_device(looking->state, question->device);
    struct vs_sibling_use *use = &looking->sibling.use[question->use];
    if (device == NULL || !use->there)
        return;
    int64_t taken = device->context_of_others - question->context_of_others;
    if (taken > use->implicit)
        taken = use->implicit;
    use->implicit -= taken;
    use->device_bytes -= taken;
}

/* The state before the first event behind each moment is the one at it. */
static int fold(struct looking *looking)
{
    const struct vs_sequenced_event *events;
    uint64_t in_keyframe = vs_reader_status(looking->reader)->keyframe_events, passed = 0;
    uint64_t until_ns =
        looking->questions[looking->question_count - 1].time_ns + ANSWERED_WITHIN_NS;
    size_t count, next = 0;
    int got, result = 0;
    bool over = false;
    while (!over && result == 0 &&
           (got = vs_reader_next_block(looking->reader, &events, &count)) != 0) {
        if (got < 0) {
            looking->sibling.whole = false;
            break;
        }
        for (size_t i = 0; i < count && result == 0 && !over; i++) {
            if (passed++ == in_keyframe && in_keyframe != 0)
                next = first_answered(looking, events[i].event.time_ns);
            while (passed > in_keyframe && next < looking->question_count &&
                   events[i].event.time_ns > looking->questions[next].time_ns)
                answer(looking, &looking->questions[next++]);
            over = events[i].event.time_ns > until_ns;
            result = over ? 0 : vs_state_event(looking->state, &events[i]);
        }
    }
    while (next < looking->question_count && result == 0)
        answer(looking, &looking->questions[next++]);
    for (size_t i = 0; i < looking->question_count; i++)
        settle(looking, &looking->questions[i]);
    return result;
}

static int describe(struct looking *looking, const char *file)
{
    struct vs_sibling *sibling = &looking->sibling;
    const struct vs_trace_status *status = vs_reader_status(looking->reader);
    sibling->file = strdup(file);
    sibling->title = strdup(vs_fact_text(looking->process, "title"));
    sibling->exe = strdup(vs_fact_text(looking->process, "exe"));
    sibling->pid = vs_fact_count(looking->process, "pid");
    sibling->host_pid = vs_fact_count(looking->process, "host_pid");
    sibling->parent_pid = vs_fact_count(looking->process, "parent_pid");
    sibling->start_ns = looking->start_ns;
    sibling->whole = vs_trace_is_sound(status) && status->sequence_gaps == 0;
    const json_t *rank = json_object_get(looking->process, "rank");
    sibling->rank = json_is_integer(rank) ? json_integer_value(rank) : -1;
    sibling->use = calloc(looking->summary->ooms.count + 1, sizeof(*sibling->use));
    sibling->peak = sibling->use == NULL ? NULL : &sibling->use[looking->summary->ooms.count];
    bool made = sibling->file != NULL && sibling->title != NULL && sibling->exe != NULL &&
                sibling->use != NULL;
    return made ? 0 : -ENOMEM;
}

/* Another process of the same machine, and when it began and ended. */
static bool is_related(struct looking *looking)
{
    looking->process = vs_reader_fact(looking->reader, "process");
    looking->clock = vs_reader_fact(looking->reader, "clock");
    looking->end = vs_reader_fact(looking->reader, "end");
    looking->start_ns = vs_fact_count(json_object_get(looking->clock, "start"), "monotonic_ns");
    looking->end_ns = vs_fact_count(looking->end, "at_ns");
    if (looking->end_ns == 0)
        looking->end_ns = UINT64_MAX;
    const char *boot_id = vs_fact_text(looking->process, "boot_id");
    const json_t *asking = looking->summary->process;
    json_t *began = json_object_get(looking->summary->clock, "start");
    looking->itself = looking->start_ns == vs_fact_count(began, "monotonic_ns") &&
                      vs_fact_count(looking->process, "pid") == vs_fact_count(asking, "pid");
    return boot_id[0] != 0 && strcmp(boot_id, vs_fact_text(asking, "boot_id")) == 0 &&
           !looking->itself;
}

static bool was_there(const struct looking *looking)
{
    for (size_t i = 0; i < looking->question_count; i++)
        if (looking->sibling.use[looking->questions[i].use].there)
            return true;
    return false;
}

static int look(struct looking *looking, const char *file)
{
    int result = is_related(looking) ? find_questions(looking) : 0;
    if (result != 0 || looking->question_count == 0)
        return result;
    struct vs_names names = vs_reader_names(looking->reader);
    result = describe(looking, file);
    if (result == 0)
        result = vs_state_create(&names, &looking->state);
    if (result == 0)
        result = vs_reader_prepare(looking->reader, looking->state);
    if (result == 0)
        result = fold(looking);
    struct vs_sibling_peak peak = vs_siblings_peak(looking->summary);
    const struct vs_device_state *device =
        peak.device < 0 || result != 0
            ? NULL
            : vs_state_device(looking->state, same_device(looking, peak.device));
    return device == NULL || !looking->sibling.peak->there ? result : find_context(looking, device);
}

static void release_sibling(struct vs_sibling *sibling)
{
    free(sibling->file);
    free(sibling->title);
    free(sibling->exe);
    free(sibling->use);
    free(sibling->context.file);
    free(sibling->context.module);
    free(sibling->context.function);
}

static int skip(struct vs_siblings *siblings, const char *file, int why)
{
    if (!vs_grow(&siblings->skips, &siblings->skip_room, siblings->skip_count + 1,
                 sizeof(*siblings->skips)))
        return -ENOMEM;
    struct vs_sibling_skip *skipped = &siblings->skips[siblings->skip_count];
    skipped->file = strdup(file);
    if (skipped->file == NULL)
        return -ENOMEM;
    snprintf(skipped->why, sizeof(skipped->why), "%s",
             why == -EINVAL ? "no trace, or too damaged" : strerror(-why));
    siblings->skip_count++;
    return 0;
}

int vs_siblings_add(struct vs_summary *summary, const char *path, const char *file)
{
    struct vs_siblings *siblings = &summary->siblings;
    struct looking looking = {.summary = summary};
    struct vs_error error = {{0}};
    siblings->looked = true;
    siblings->traces++;
    int result = vs_reader_open(path, &looking.reader, &error);
    if (result != 0)
        return result == -ENOMEM ? result : skip(siblings, file, result);
    result = look(&looking, file);
    siblings->traces -= looking.itself;
    bool kept = result == 0 && looking.question_count != 0 && was_there(&looking);
    if (kept &&
        !vs_grow(&siblings->items, &siblings->room, siblings->count + 1, sizeof(*siblings->items)))
        result = -ENOMEM;
    if (kept && result == 0)
        siblings->items[siblings->count++] = looking.sibling;
    else
        release_sibling(&looking.sibling);
    free(looking.questions);
    json_decref(looking.process);
    json_decref(looking.clock);
    json_decref(looking.end);
    vs_state_destroy(looking.state);
    vs_reader_close(looking.reader);
    return result;
}

const char *vs_sibling_name(const struct vs_sibling *sibling)
{
    if (sibling->title[0] != 0)
        return sibling->title;
    const char *slash = strrchr(sibling->exe, '/');
    const char *name = slash != NULL ? slash + 1 : sibling->exe;
    return name[0] != 0 ? name : "unknown program";
}

const struct vs_sibling *vs_siblings_by_pid(const struct vs_siblings *siblings, uint64_t pid)
{
    for (size_t i = 0; i < siblings->count; i++) {
        const struct vs_sibling *sibling = &siblings->items[i];
        if (pid != 0 && pid == (sibling->host_pid != 0 ? sibling->host_pid : sibling->pid))
            return sibling;
    }
    return NULL;
}

void vs_siblings_release(struct vs_siblings *siblings)
{
    for (size_t i = 0; i < siblings->count; i++)
        release_sibling(&siblings->items[i]);
    for (size_t i = 0; i < siblings->skip_count; i++)
        free(siblings->skips[i].file);
    free(siblings->items);
    free(siblings->skips);
    *siblings = (struct vs_siblings){0};
}
