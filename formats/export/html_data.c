/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data of a page: one JSON object. Rows are columns of differences, texts and
 * frames are numbers into tables at the end, so that a page stays small.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "html_findings.h"
#include "html_values.h"
#include "replay/grow.h"
#include "texts.h"

/* ---- frames
 * --------------------------------------------------------------------------------------- */

/* Number of a text; -1 for none. */
static long string_number(struct vs_html_data *data, const char *text)
{
    if (text == NULL || text[0] == 0)
        return -1;
    long number = vs_html_name(&data->strings, text, strlen(text));
    if (number < 0)
        data->error = (int)number;
    return number;
}

static void put_frame_number(struct vs_html_data *data, const struct vs_frame *frame)
{
    const char *function = frame->function;
    char address[32];
    if (function == NULL && frame->kind == VS_FRAME_NATIVE) {
        snprintf(address, sizeof(address), "+0x%" PRIx64, frame->address);
        function = address;
    }
    const int32_t parts[] = {(int32_t)string_number(data, function),
                             (int32_t)string_number(data, frame->file),
                             (int32_t)frame->line,
                             (int32_t)string_number(data, frame->module),
                             (int32_t)frame->kind,
                             frame->own};
    long number = vs_html_name(&data->frames, parts, sizeof(parts));
    if (number < 0)
        data->error = (int)number;
    vs_html_integer(data->sink, number);
}

static void put_place(struct vs_html_data *data, const struct vs_place *place)
{
    const struct vs_places *places = &data->html->places;
    const struct vs_state *state = data->html->summary->state;
    const struct vs_site *site = vs_places_site(places, place);
    const struct vs_frame *frames = NULL;
    long count = vs_places_frames(places, place, &frames);
    if (count < 0)
        data->error = (int)count;
    vs_sink_printf(data->sink, "[%u,%u,", (unsigned)site->layer, (unsigned)site->kind);
    vs_html_integer(data->sink, string_number(data, vs_state_owner_name(state, site->owner)));
    vs_sink_text(data->sink, ",");
    vs_html_integer(data->sink, string_number(data, vs_state_string(state, site->label)));
    vs_sink_text(data->sink, ",");
    vs_html_integer(data->sink, place->has_stack ? (int64_t)place->number : -1);
    vs_sink_text(data->sink, ",");
    vs_html_integer(data->sink, count > 0 ? vs_places_frame(frames, (size_t)count) : -1);
    vs_sink_text(data->sink, ",[");
    bool any = false;
    for (long i = 0; i < count; i++) {
        vs_html_next(data->sink, &any);
        put_frame_number(data, &frames[i]);
    }
    vs_sink_text(data->sink, "]]");
}

static void put_places(struct vs_html_data *data)
{
    bool any = false;
    vs_sink_text(data->sink, "\"places\":[");
    for (size_t i = 0; i < data->place_count && data->error == 0; i++) {
        vs_html_next(data->sink, &any);
        vs_sink_text(data->sink, "\n");
        put_place(data, &data->html->places.items[data->places[i]]);
    }
    vs_sink_text(data->sink, "],\n");
}

static void put_tables(struct vs_html_data *data)
{
    bool any = false;
    vs_sink_text(data->sink, "\"frames\":[");
    for (size_t i = 0; i < data->frames.count; i++) {
        int32_t parts[6];
        memcpy(parts, data->frames.items[i].data, sizeof(parts));
        vs_html_next(data->sink, &any);
        vs_sink_printf(data->sink, "[%d,%d,%d,%d,%d,%d]", parts[0], parts[1], parts[2], parts[3],
                       parts[4], parts[5]);
    }
    vs_sink_text(data->sink, "],\n\"strings\":[");
    any = false;
    for (size_t i = 0; i < data->strings.count; i++) {
        vs_html_next(data->sink, &any);
        vs_html_text(data, data->strings.items[i].data);
    }
    vs_sink_text(data->sink, "]");
}

/* ---- the trace
 * -------------------------------------------------------------------------------------- */

static const char *base_name(const char *path)
{
    const char *slash = path == NULL ? NULL : strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

static void put_trace(struct vs_html_data *data)
{
    const struct vs_summary *summary = data->html->summary;
    const struct vs_export *export = data->html->export;
    struct vs_sink *sink = data->sink;
    char filter[256];
    vs_export_filter_text(export, filter, sizeof(filter));
    vs_sink_text(sink, "\"trace\":{");
    vs_html_text_member(data, "file",
                        export->called != NULL ? export->called : base_name(export->path));
    vs_sink_text(sink, ",");
    vs_html_text_member(data, "exe",
                        base_name(json_string_value(json_object_get(summary->process, "exe"))));
    vs_sink_text(sink, ",");
    const json_t *rank = json_object_get(summary->process, "rank");
    vs_html_integer_member_if(sink, "rank", json_is_integer(rank), json_integer_value(rank));
    vs_sink_text(sink, ",");
    vs_html_integer_member(sink, "events", (int64_t)summary->state->counts.events);
    vs_sink_text(sink, ",");
    vs_html_integer_member(sink, "lost", (int64_t)summary->lost);
    vs_sink_text(sink, ",");
    vs_html_integer_member(sink, "torn", (int64_t)summary->torn);
    vs_sink_printf(sink, ",\"complete\":%s,\"damaged\":%s,", summary->complete ? "true" : "false",
                   summary->status.damaged_chunks != 0 || summary->status.truncated ||
                           summary->read_error != 0
                       ? "true"
                       : "false");
    vs_html_text_member(data, "ended", summary->ended);
    vs_sink_text(sink, ",");
    vs_html_integer_member_if(sink, "exit_code", summary->exit_code_known, summary->exit_code);
    vs_sink_text(sink, ",");
    vs_html_integer_member_if(sink, "signal", summary->signal_known, summary->signal);
    vs_sink_text(sink, ",");
    vs_html_integer_member(sink, "duration_ns", (int64_t)summary->duration_ns);
    vs_sink_text(sink, ",");
    vs_html_integer_member(sink, "from_ns", summary->windowed ? (int64_t)summary->from_ns : 0);
    vs_sink_text(sink, ",");
    vs_html_integer_member(sink, "to_ns",
                           (int64_t)(summary->windowed ? summary->to_ns : summary->duration_ns));
    vs_sink_text(sink, ",");
    vs_html_text_member(data, "filter", filter);
    vs_sink_text(sink, "},\n");
}

/* ---- devices
 * ------------------------------------------------------------------------------------------ */

/* Column -1 is the time, VS_HTML_COLUMNS whether the row was measured. */
static int64_t cell(const struct vs_html_row *row, int column)
{
    return column < 0                  ? (int64_t)row->time_ns
           : column == VS_HTML_COLUMNS ? row->measured
                                       : row->value[column];
}

static void put_column(struct vs_sink *sink, const struct vs_html_curve *curve, int column)
{
    int64_t last = 0;
    bool any = false;
    for (size_t i = 0; i < curve->count; i++) {
        const struct vs_html_row *rows[VS_HTML_KEPT];
        size_t count = vs_html_stretch_rows(&curve->stretches[i], rows);
        for (size_t k = 0; k < count; k++) {
            int64_t value = cell(rows[k], column);
            vs_html_next(sink, &any);
            vs_html_integer(sink, value - last);
            last = value;
        }
    }
}

static void put_rows(struct vs_sink *sink, const struct vs_html_curve *curve)
{
    static const char *const names[] = {
        [VS_HTML_LIVE] = "live",         [VS_HTML_ALLOCATED] = "allocated",
        [VS_HTML_RESERVED] = "reserved", [VS_HTML_DEVICE] = "device",
        [VS_HTML_BACKED] = "backed",     [VS_HTML_DIRECT] = "direct",
        [VS_HTML_IMPLICIT] = "implicit", [VS_HTML_OTHER] = "other",
        [VS_HTML_PINNED] = "pinned",     [VS_HTML_UNEXPLAINED] = "unexplained",
        [VS_HTML_COLUMNS] = "measured"};
    vs_sink_text(sink, "\"rows\":{\"time\":[");
    put_column(sink, curve, -1);
    for (int column = 0; column <= VS_HTML_COLUMNS; column++) {
        vs_sink_printf(sink, "],\n\"%s\":[", names[column]);
        put_column(sink, curve, column);
    }
    vs_sink_text(sink, "]}");
}

static void put_device(struct vs_html_data *data, int device, const struct vs_html_device *kept)
{
    const struct vs_state *all = data->html->summary->state;
    const struct vs_device_state *state = vs_state_device(all, device);
    const struct vs_device_def *def = vs_summary_device_def(data->html->summary, device);
    const struct vs_layer_total *top = &state->layers[vs_device_top_layer(state)];
    struct vs_sink *sink = data->sink;
    vs_sink_printf(sink, "{\"index\":%d,", device);
    vs_html_text_member(data, "name", def == NULL ? NULL : def->name);
    vs_sink_text(sink, ",");
    vs_html_integer_member_if(sink, "total", state->total_bytes != 0, (int64_t)state->total_bytes);
    vs_sink_text(sink, ",");
    vs_html_text_member(data, "framework",
                        state->framework_seen ? vs_state_owner_name(all, state->framework_owner)
                                              : NULL);
    vs_sink_printf(sink, ",\"seen\":%" PRIu64 ",\"stretch_rows\":%" PRIu64 ",", kept->curve.rows,
                   kept->curve.most_rows);
    vs_html_integer_member(sink, "peak", top->peak_bytes);
    vs_sink_text(sink, ",");
    vs_html_integer_member(sink, "peak_ns",
                           (int64_t)vs_summary_at(data->html->summary, top->peak_time_ns));
    vs_sink_text(sink, ",");
    vs_html_integer_member(sink, "reserved_peak", state->reserved_peak);
    vs_sink_text(sink, ",");
    vs_html_integer_member_if(sink, "device_peak", state->measured, state->used_peak);
    vs_sink_text(sink, ",\n");
    put_rows(sink, &kept->curve);
    vs_sink_text(sink, "}");
}

static void put_devices(struct vs_html_data *data)
{
    bool any = false;
    vs_sink_text(data->sink, "\"devices\":[");
    for (int slot = 0; slot < VS_DEVICE_SLOTS; slot++) {
        if (data->html->devices[slot] == NULL)
            continue;
        vs_html_next(data->sink, &any);
        put_device(data, slot - VS_DEVICE_OFFSET, data->html->devices[slot]);
    }
    vs_sink_text(data->sink, "],\n");
}

/* ---- instants
 * ------------------------------------------------------------------------------------------- */

static int by_place(const void *a, const void *b)
{
    const struct vs_html_live *left = a, *right = b;
    return (left->site > right->site) - (left->site < right->site);
}

/* The set by place, `site` being the place's index. Returns how many; those beyond go. */
static size_t by_places(struct vs_html_data *data, const struct vs_html_set *set,
                        struct vs_html_live *out)
{
    size_t count = 0;
    for (size_t i = 0; i < set->live_count; i++) {
        out[i] = set->live[i];
        out[i].site = vs_html_place(data, set->live[i].site);
    }
    qsort(out, set->live_count, sizeof(*out), by_place);
    for (size_t i = 0; i < set->live_count; i++) {
        if (count > 0 && out[count - 1].site == out[i].site) {
            out[count - 1].bytes += out[i].bytes;
            out[count - 1].count += out[i].count;
        } else {
            out[count++] = out[i];
        }
    }
    return count;
}

static void put_live(struct vs_html_data *data, const struct vs_html_set *set)
{
    struct vs_html_live *live = malloc((set->live_count + 1) * sizeof(*live));
    if (live == NULL) {
        data->error = -ENOMEM;
        return;
    }
    size_t count = by_places(data, set, live);
    bool any = false;
    vs_sink_text(data->sink, "\"live\":[");
    for (size_t i = 0; i < count; i++) {
        long number = vs_html_number(data, live[i].site);
        if (number < 0)
            continue;
        vs_html_next(data->sink, &any);
        vs_sink_printf(data->sink, "%ld,%" PRId64 ",%" PRId64, number, live[i].bytes,
                       live[i].count);
    }
    vs_sink_printf(data->sink, "],\"total\":[%zu,%" PRId64 ",%" PRId64 "]", set->total_sites,
                   set->total_bytes, set->total_count);
    free(live);
}

/* [gap to the one before, span, bytes, place, count, …] */
static void put_blocks(struct vs_html_data *data, const struct vs_html_set *set,
                       const struct vs_segment *segment)
{
    uint64_t at = segment->address;
    bool any = false;
    for (size_t i = 0; i < segment->block_count; i++) {
        const struct vs_html_block *block = &set->blocks[segment->first_block + i];
        vs_html_next(data->sink, &any);
        vs_sink_printf(data->sink, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%ld,%u",
                       block->address - at, block->span, block->bytes,
                       vs_html_number(data, vs_html_place(data, block->site)), block->count);
        at = block->address + block->span;
    }
}

static void put_segments(struct vs_html_data *data, const struct vs_html_set *set)
{
    const struct vs_fragmentation *then = &set->fragmentation;
    bool any = false;
    vs_sink_printf(data->sink,
                   ",\"joined_below\":%" PRIu64 ",\"free\":%" PRIu64 ",\"largest_free\":%" PRIu64
                   ",\"releasable\":%" PRIu64 ",\"pinned\":[%" PRIu64 ",%" PRIu64
                   "],\"segments\":[",
                   set->joined_below, then->free_bytes, then->largest_free_bytes,
                   then->releasable_bytes, then->pinned_count, then->pinned_held_bytes);
    for (size_t i = 0; i < set->segment_count; i++) {
        const struct vs_segment *segment = &set->segments[i];
        vs_html_next(data->sink, &any);
        vs_sink_printf(data->sink, "\n[\"0x%" PRIx64 "\",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%d,[",
                       segment->address, segment->size, segment->reserved_bytes,
                       segment->live_bytes, (int)segment->kind);
        put_blocks(data, set, segment);
        vs_sink_text(data->sink, "]]");
    }
    vs_sink_text(data->sink, "]");
}

static void put_instant(struct vs_html_data *data, const struct vs_html_set *set)
{
    vs_sink_printf(data->sink, "\n{\"device\":%d,\"at_ns\":%" PRIu64 ",", set->device,
                   set->time_ns);
    vs_html_integer_member_if(data->sink, "sequence", set->sequence != UINT64_MAX,
                              (int64_t)set->sequence);
    vs_sink_printf(data->sink, ",\"reasons\":%u,", (unsigned)set->reasons);
    put_live(data, set);
    if (set->layout_known)
        put_segments(data, set);
    vs_sink_text(data->sink, "}");
}

/* Key instants first: their places get a number before there are too many. */
static void put_instants(struct vs_html_data *data)
{
    const struct vs_html_sets *sets = &data->html->sets;
    bool any = false;
    vs_sink_text(data->sink, "\"instants\":[");
    for (int key = 1; key >= 0; key--)
        for (size_t i = 0; i < sets->count && data->error == 0; i++) {
            const struct vs_html_set *set = &sets->items[i];
            if (!set->taken || ((set->reasons & VS_HTML_KEY) != 0) != key)
                continue;
            vs_html_next(data->sink, &any);
            put_instant(data, set);
        }
    vs_sink_text(data->sink, "],\n");
}

/* ---- all of it
 * -------------------------------------------------------------------------------------------- */

static void put_start(struct vs_html_data *data)
{
    const struct vs_export *export = data->html->export;
    char at[64];
    vs_export_at_text(export, at, sizeof(at));
    vs_sink_printf(data->sink, "{\"schema\":\"vramscope-html/1\",\"version\":\"%s\",", VS_VERSION);
    vs_html_text_member(data, "at", export->at == VS_AT_TIME ? "asked" : at);
    vs_sink_printf(data->sink, ",\"min_bytes\":%" PRIu64 ",\"oom_sets\":%d,\n", export->min_bytes,
                   VS_HTML_OOM_SETS);
}

int vs_html_write_data(const struct vs_html *html)
{
    struct vs_html_data data;
    int result = vs_html_open(&data, html);
    if (result == 0) {
        put_start(&data);
        put_trace(&data);
        put_devices(&data);
        vs_html_write_findings(&data);
        vs_html_write_phases(&data);
        put_instants(&data);
        put_places(&data);
        put_tables(&data);
        vs_sink_text(data.sink, "}");
        result = data.error;
    }
    vs_html_release(&data);
    return result;
}
