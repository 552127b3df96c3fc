/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "sites" of the report: every place with its frames. What
 * --top and --min-bytes leave out is summed up in one entry per device and layer;
 * what the rest of the report refers to is never left out.
 */
#include <stdlib.h>

#include "report_json.h"

const char *report_site_kind(uint8_t kind)
{
    return kind == VS_SITE_CALL               ? "call"
           : kind == VS_SITE_BEFORE_RECORDING ? "before_recording"
                                              : "uncertain";
}

json_t *report_json_stack(const struct report *report, uint32_t site)
{
    const struct vs_place *place = vs_places_of(report->places, site);
    return place == NULL ? json_null() : json_count(place->number);
}

/* ---- frames ------------------------------------------------------------------------------- */

static json_t *frame_json(const struct vs_frame *frame)
{
    bool native = frame->kind == VS_FRAME_NATIVE;
    json_t *object = json_object();
    json_set(object, "kind", json_string(native ? "native" : "python"));
    json_set(object, "function", json_text(frame->function));
    json_set(object, "file", json_text(frame->file));
    json_set(object, "line", json_integer_if(frame->line != 0, frame->line));
    json_set(object, "module", json_text(frame->module));
    if (native)
        json_set(object, "address", json_count(frame->address));
    if (frame->inlined)
        json_set(object, "inlined", json_true());
    return object;
}

/* Frames, innermost first; remarks on what is missing are "notes" beside them. */
static void add_frames(const struct report *report, const struct vs_place *place, json_t *object)
{
    const struct vs_frame *frames = NULL;
    long count = vs_places_frames(report->places, place, &frames);
    json_t *list = json_array(), *notes = json_array();
    for (long i = 0; i < count; i++) {
        if (frames[i].kind == VS_FRAME_NOTE)
            json_array_append_new(notes, json_text(frames[i].function));
        else
            json_array_append_new(list, frame_json(&frames[i]));
    }
    json_set(object, "frames", list);
    if (json_array_size(notes) != 0)
        json_set(object, "notes", notes);
    else
        json_decref(notes);
}

/* ---- one entry ------------------------------------------------------------------------------ */

void report_json_stats(json_t *object, const struct vs_site_stats *stats)
{
    json_set(object, "allocs", json_count(stats->allocs));
    json_set(object, "frees", json_count(stats->frees));
    json_set(object, "failed", json_count(stats->failed));
    json_set(object, "bytes", json_count(stats->bytes));
    json_set_bytes(object, "peak_bytes", stats->peak_bytes);
    json_set_bytes(object, "peak_count", stats->peak_count);
    json_set_bytes(object, "end_bytes", stats->live_bytes);
    json_set_bytes(object, "end_count", stats->live_count);
}

static json_t *place_json(const struct report *report, const struct vs_place *place)
{
    const struct vs_summary *summary = report->summary;
    const struct vs_site *site = vs_places_site(report->places, place);
    bool call = site->kind == VS_SITE_CALL;
    json_t *object = json_object();
    json_set(object, "stack", json_count(place->number));
    json_set(object, "kind", json_string(report_site_kind(site->kind)));
    json_set(object, "layer", json_string(report_layer_name(site->layer)));
    json_set(object, "device", json_integer_if(site->device >= 0, site->device));
    json_set(object, "owner",
             call ? json_text(vs_state_owner_name(summary->state, site->owner)) : json_null());
    json_set(object, "api", call ? json_text(label_text(summary, site->label)) : json_null());
    json_set(object, "segment", json_boolean(site->segment));
    report_json_stats(object, &place->stats);
    if (site->layer == VS_LAYER_HOST)
        json_set_bytes(object, "end_rounding_at_most_bytes", place->stats.live_rounding);
    report_json_category(report, place, object);
    add_frames(report, place, object);
    return object;
}

/* ---- which places are listed -------------------------------------------------------------- */

static void refer(const struct report *report, bool *referred, uint32_t site)
{
    const struct vs_place *place = vs_places_of(report->places, site);
    if (place != NULL)
        referred[place - report->places->items] = true;
}

static void refer_live(const struct report *report, bool *referred, enum vs_object_kind kind)
{
    size_t index = 0;
    uint64_t key;
    const struct vs_object *object;
    while ((object = vs_live_objects_next(&report->summary->objects.kinds[kind].live, &index,
                                          &key)) != NULL)
        refer(report, referred, object->site);
}

static void refer_pools(const struct report *report, bool *referred,
                        const struct vs_fragmentation *then)
{
    for (size_t i = 0; then != NULL && i < then->part_count; i++)
        refer(report, referred, then->parts[i].made_by);
}

/* Where the private pools were made that the report tells of. */
static void note_pools(const struct report *report, bool *referred)
{
    const struct vs_summary *summary = report->summary;
    const struct vs_fragmentations *kept = &summary->fragmentations;
    const struct vs_range *at = vs_ranges_from(&summary->state->segments, 0);
    for (; at != NULL; at = vs_ranges_from(&summary->state->segments, at->start + at->size))
        refer(report, referred, at->pool_site);
    for (size_t i = 0; i < VS_FRAGMENTATIONS_KEPT; i++)
        refer_pools(report, referred, &kept->items[i].then);
    for (size_t i = 0; i < VS_DEVICE_SLOTS; i++)
        refer_pools(report, referred, kept->at_reserved_peak[i]);
}

static void note_references(const struct report *report, bool *referred)
{
    const struct vs_summary *summary = report->summary;
    for (size_t i = 0; i < summary->ooms.count; i++)
        if (report_lists_oom(report, &summary->ooms.items[i]))
            refer(report, referred, summary->ooms.items[i].site);
    for (size_t i = 0; i < summary->failures.count; i++)
        refer(report, referred, summary->failures.items[i].site);
    for (size_t i = 0; i < VS_OBJECT_KINDS; i++)
        refer(report, referred, summary->objects.kinds[i].site);
    refer_live(report, referred, VS_OBJECT_IPC_HANDLE);
    refer_live(report, referred, VS_OBJECT_IPC_MAPPING);
    for (size_t i = 0; i < summary->state->physical_count; i++)
        refer(report, referred, summary->state->physicals[i].shared_site);
    for (size_t i = 0; i < summary->state->communicator_count; i++)
        refer(report, referred, summary->state->communicators[i].site);
    for (size_t i = 0; i < report->grown->count; i++)
        refer(report, referred, report->grown->items[i].site);
    for (size_t i = DEVICE_OFFSET; i < VS_DEVICE_SLOTS; i++) {
        if (summary->state->devices[i] == NULL)
            continue;
        refer(report, referred, summary->state->devices[i]->context_site);
        for (size_t k = 0; k < VS_LIMITS; k++)
            refer(report, referred, summary->state->devices[i]->limits[k].site);
    }
    note_pools(report, referred);
}

static int by_rank(const void *a, const void *b)
{
    const struct vs_place *left = *(const struct vs_place *const *)a,
                          *right = *(const struct vs_place *const *)b;
    if (left->stats.peak_bytes != right->stats.peak_bytes)
        return left->stats.peak_bytes < right->stats.peak_bytes ? 1 : -1;
    return (left->site > right->site) - (left->site < right->site);
}

/* The places of one layer of one device, the largest at the peak first. */
static size_t rank(const struct report *report, int device, unsigned layer,
                   const struct vs_place **ranked)
{
    const struct vs_places *places = report->places;
    size_t count = 0;
    for (size_t i = 0; i < places->count; i++) {
        const struct vs_site *site = vs_places_site(places, &places->items[i]);
        if (site->device == device && site->layer == layer)
            ranked[count++] = &places->items[i];
    }
    if (count > 1)
        qsort(ranked, count, sizeof(*ranked), by_rank);
    return count;
}

/* ---- what is left out --------------------------------------------------------------------- */

json_t *report_json_rest(int device, unsigned layer, size_t count, const struct vs_site_stats *sum)
{
    static const char *const none[] = {"stack", "owner", "api", "segment"};
    json_t *object = json_object();
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        json_set(object, none[i], json_null());
    json_set(object, "kind", json_string("rest"));
    json_set(object, "sites", json_count(count));
    json_set(object, "layer", json_string(report_layer_name(layer)));
    json_set(object, "device", json_integer_if(device >= 0, device));
    report_json_stats(object, sum);
    json_set(object, "frames", json_array());
    return object;
}

/* Marks what is listed of one layer of one device; the rest is one entry. */
static void choose(const struct report *report, int device, unsigned layer, bool *listed,
                   const struct vs_place **ranked, json_t *rests)
{
    struct vs_site_stats rest = {0};
    size_t count = rank(report, device, layer, ranked), left_out = 0, top = report->options->top;
    for (size_t i = 0; i < count; i++) {
        bool *is_listed = &listed[ranked[i] - report->places->items];
        if ((top == 0 || i < top) && !report_is_small(report, &ranked[i]->stats))
            *is_listed = true;
        if (*is_listed)
            continue;
        vs_site_stats_add(&rest, &ranked[i]->stats);
        left_out++;
    }
    if (left_out != 0)
        json_array_append_new(rests, report_json_rest(device, layer, left_out, &rest));
}

/* Chooses for every layer of every device that has places. */
static void choose_all(const struct report *report, bool *listed, const struct vs_place **ranked,
                       json_t *rests)
{
    const struct vs_places *places = report->places;
    bool present[VS_DEVICE_SLOTS][VS_LAYERS] = {{false}};
    for (size_t i = 0; i < places->count; i++) {
        const struct vs_site *site = vs_places_site(places, &places->items[i]);
        present[site->device + DEVICE_OFFSET][site->layer] = true;
    }
    for (int slot = 0; slot < VS_DEVICE_SLOTS; slot++)
        for (unsigned layer = 0; layer < VS_LAYERS; layer++)
            if (present[slot][layer] && !report_hides_device(report, slot - DEVICE_OFFSET))
                choose(report, slot - DEVICE_OFFSET, layer, listed, ranked, rests);
}

void report_json_sites(const struct report *report, struct json_writer *root)
{
    const struct vs_places *places = report->places;
    bool *listed = calloc(places->count + 1, sizeof(*listed));
    const struct vs_place **ranked = calloc(places->count + 1, sizeof(*ranked));
    json_t *rests = json_array();
    json_writer_begin_list(root, "sites");
    if (listed != NULL && ranked != NULL && rests != NULL) {
        note_references(report, listed);
        choose_all(report, listed, ranked, rests);
        for (size_t i = 0; i < places->count; i++)
            if (listed[i])
                json_writer_item(root, place_json(report, &places->items[i]));
        for (size_t i = 0; i < json_array_size(rests); i++)
            json_writer_item(root, json_incref(json_array_get(rests, i)));
    } else {
        root->failed = true;
    }
    json_writer_end_list(root);
    json_decref(rests);
    free(listed);
    free(ranked);
}
