/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the traces of other processes for what they held when a request failed: siblings.h. */
#include "siblings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "layers.h"
#include "reader_facts.h"
#include "segments.h"
#include "summary.h"
#include "trace.h"

/* Walking the live blocks for every failure of a long run must stay affordable. */
#define WALK_LIMIT 20000000ULL

bool vs_siblings_concern(const struct vs_oom *oom)
{
    return oom->device >= 0 && oom->layer != VS_LAYER_HOST && oom->class != VS_OOM_FOLLOW_UP &&
           oom->class != VS_OOM_ADDRESS_SPACE && oom->class != VS_OOM_MULTICAST &&
           oom->class != VS_OOM_LIMIT && oom->class != VS_OOM_REQUEST_EXCEEDS_DEVICE;
}

static const char *boot_id_of(const json_t *process)
{
    const char *boot_id = json_string_value(json_object_get(process, "boot_id"));
    return boot_id == NULL ? "" : boot_id;
}

static bool has_uuid(const struct vs_device_def *device)
{
    static const uint8_t none[sizeof(device->uuid)];
    return device != NULL && memcmp(device->uuid, none, sizeof(none)) != 0;
}

bool vs_siblings_wanted(const struct vs_summary *summary)
{
    if (boot_id_of(summary->process)[0] == 0)
        return false;
    for (size_t i = 0; i < summary->ooms.count; i++) {
        const struct vs_oom *oom = &summary->ooms.items[i];
        if (vs_siblings_concern(oom) && has_uuid(vs_summary_device_def(summary, oom->device)))
            return true;
    }
    return false;
}

/* ---- one trace ------------------------------------------------------------------------- */

/* A failure that a trace is asked about; those of one trace are in order of time. */
struct question {
    uint64_t time_ns;
    size_t oom;     /* its place in the summary */
    int16_t device; /* of the sibling */
};

struct looking {
    const struct vs_summary *summary;
    struct vs_reader *reader;
    struct vs_state *state;
    json_t *process, *clock, *end;
    uint64_t start_ns, end_ns; /* of the process; `end_ns` UINT64_MAX: not known */
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

static int find_questions(struct looking *looking)
{
    const struct vs_ooms *ooms = &looking->summary->ooms;
    looking->questions = calloc(ooms->count + 1, sizeof(*looking->questions));
    if (looking->questions == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < ooms->count; i++) {
        const struct vs_oom *oom = &ooms->items[i];
        if (!vs_siblings_concern(oom) || oom->time_ns < looking->start_ns ||
            oom->time_ns > looking->end_ns)
            continue;
        struct question question = {oom->time_ns, i, same_device(looking, oom->device)};
        if (question.device >= 0)
            looking->questions[looking->question_count++] = question;
    }
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

static void answer(struct looking *looking, const struct question *question)
{
    const struct vs_device_state *device = vs_state_device(looking->state, question->device);
    struct vs_sibling_use *use = &looking->sibling.use[question->oom];
    struct vs_bands bands;
    if (device == NULL)
        return;
    vs_state_bands(looking->state, device, &bands);
    int64_t implicit = 0;
    for (int i = 0; i < VS_IMPLICITS; i++)
        implicit += bands.implicit[i];
    use->uncertain = implicit < bands.implicit_uncertainty ? implicit : bands.implicit_uncertainty;
    use->device_bytes = bands.backed + bands.direct + implicit - use->uncertain;
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

/* The state before the first event behind each failure is the one at that failure. */
static int fold(struct looking *looking)
{
    const struct vs_sequenced_event *events;
    uint64_t in_keyframe = vs_reader_status(looking->reader)->keyframe_events, passed = 0;
    size_t count, next = 0;
    int got, result = 0;
    while (next < looking->question_count && result == 0 &&
           (got = vs_reader_next_block(looking->reader, &events, &count)) != 0) {
        if (got < 0)
            looking->sibling.whole = false;
        if (got < 0)
            break;
        for (size_t i = 0; i < count && result == 0; i++) {
            if (passed++ == in_keyframe && in_keyframe != 0)
                next = first_answered(looking, events[i].event.time_ns);
            while (passed > in_keyframe && next < looking->question_count &&
                   events[i].event.time_ns > looking->questions[next].time_ns)
                answer(looking, &looking->questions[next++]);
            result =
                next < looking->question_count ? vs_state_event(looking->state, &events[i]) : 0;
        }
    }
    while (next < looking->question_count && result == 0)
        answer(looking, &looking->questions[next++]);
    return result;
}

static char *copy_of(const json_t *object, const char *field)
{
    const char *text = json_string_value(json_object_get(object, field));
    return strdup(text == NULL ? "" : text);
}

static int describe(struct looking *looking, const char *file)
{
    struct vs_sibling *sibling = &looking->sibling;
    const struct vs_trace_status *status = vs_reader_status(looking->reader);
    sibling->file = strdup(file);
    sibling->title = copy_of(looking->process, "title");
    sibling->exe = copy_of(looking->process, "exe");
    sibling->pid = vs_fact_count(looking->process, "pid");
    sibling->host_pid = vs_fact_count(looking->process, "host_pid");
    sibling->parent_pid = vs_fact_count(looking->process, "parent_pid");
    sibling->start_ns = looking->start_ns;
    sibling->whole = !status->truncated && status->damaged_chunks == 0 &&
                     status->damaged_bytes == 0 && status->sequence_gaps == 0;
    sibling->use = calloc(looking->summary->ooms.count, sizeof(*sibling->use));
    bool made = sibling->file != NULL && sibling->title != NULL && sibling->exe != NULL &&
                sibling->use != NULL;
    return made ? 0 : -ENOMEM;
}

/* Of the same machine, and when it began and ended. */
static bool is_related(struct looking *looking)
{
    looking->process = vs_reader_fact(looking->reader, "process");
    looking->clock = vs_reader_fact(looking->reader, "clock");
    looking->end = vs_reader_fact(looking->reader, "end");
    looking->start_ns = vs_fact_count(json_object_get(looking->clock, "start"), "monotonic_ns");
    looking->end_ns = vs_fact_count(looking->end, "at_ns");
    if (looking->end_ns == 0)
        looking->end_ns = UINT64_MAX;
    const char *boot_id = boot_id_of(looking->process);
    return boot_id[0] != 0 && strcmp(boot_id, boot_id_of(looking->summary->process)) == 0;
}

static bool was_there(const struct looking *looking)
{
    for (size_t i = 0; i < looking->question_count; i++)
        if (looking->sibling.use[looking->questions[i].oom].there)
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
    return result == 0 ? fold(looking) : result;
}

static void release_sibling(struct vs_sibling *sibling)
{
    free(sibling->file);
    free(sibling->title);
    free(sibling->exe);
    free(sibling->use);
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
