/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile for pprof, Pyroscope, Parca: gzip of the message Profile of
 * github.com/google/pprof/proto/profile.proto, whose field numbers are below.
 * Samples come first, one by one; what they refer to is known at the end.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "formats.h"
#include "gzip.h"
#include "pprof_tables.h"
#include "profile.h"
#include "proto.h"

/* Fields of the messages. */
enum {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE = 2,
    PROFILE_TIME_NANOS = 9,
    PROFILE_DURATION_NANOS = 10,
    PROFILE_PERIOD_TYPE = 11,
    PROFILE_PERIOD = 12,
    PROFILE_COMMENT = 13,
    PROFILE_DEFAULT_SAMPLE_TYPE = 14
};
enum { TYPE_TYPE = 1, TYPE_UNIT = 2 };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE = 2, SAMPLE_LABEL = 3 };
enum { LABEL_KEY = 1, LABEL_STRING = 2, LABEL_NUMBER = 3 };

/* In the order that Go's own heap profiles have. */
static const struct {
    enum vs_export_metric metric;
    const char *unit;
} types[VS_METRICS] = {{VS_METRIC_ALLOC_OBJECTS, "count"},
                       {VS_METRIC_ALLOC_SPACE, "bytes"},
                       {VS_METRIC_INUSE_OBJECTS, "count"},
                       {VS_METRIC_INUSE_SPACE, "bytes"}};

struct writing {
    struct vs_export *export;
    struct vs_profile *profile;
    struct vs_sink *sink;
    struct pprof_tables *tables;
    struct vs_proto message, inner;
    uint64_t *locations;
    size_t location_room;
};

static void put_type(struct writing *writing, uint32_t field, const char *type, const char *unit)
{
    vs_proto_clear(&writing->message);
    vs_proto_count(&writing->message, TYPE_TYPE, pprof_string(writing->tables, type));
    vs_proto_count(&writing->message, TYPE_UNIT, pprof_string(writing->tables, unit));
    vs_proto_put(writing->sink, field, &writing->message);
}

/* ---- samples
 * -------------------------------------------------------------------------------------- */

static void begin_label(struct writing *writing, const char *key)
{
    vs_proto_clear(&writing->inner);
    vs_proto_count(&writing->inner, LABEL_KEY, pprof_string(writing->tables, key));
}

static void put_number_label(struct writing *writing, const char *key, uint64_t value)
{
    begin_label(writing, key);
    vs_proto_count(&writing->inner, LABEL_NUMBER, value);
    vs_proto_message(&writing->message, SAMPLE_LABEL, &writing->inner);
}

static void put_text_label(struct writing *writing, const char *key, const char *value)
{
    begin_label(writing, key);
    vs_proto_count(&writing->inner, LABEL_STRING, pprof_string_copy(writing->tables, value));
    vs_proto_message(&writing->message, SAMPLE_LABEL, &writing->inner);
}

/*
 * Readers drop a label whose number is 0, so devices and ranks are texts. A step 0
 * stays out.
 */
static void put_labels(struct writing *writing, const struct vs_profile_sample *sample)
{
    const json_t *rank = json_object_get(writing->export->process, "rank");
    char text[24];
    snprintf(text, sizeof(text), "%d", sample->device);
    put_text_label(writing, "device", text);
    put_text_label(writing, "layer", vs_export_layer_name(sample->layer));
    if (json_is_integer(rank)) {
        snprintf(text, sizeof(text), "%" JSON_INTEGER_FORMAT, json_integer_value(rank));
        put_text_label(writing, "rank", text);
    }
    if (sample->step_known && sample->step != 0)
        put_number_label(writing, "step", sample->step);
}

static bool make_room(struct writing *writing, size_t count)
{
    if (count <= writing->location_room)
        return true;
    uint64_t *grown = realloc(writing->locations, count * 2 * sizeof(*grown));
    if (grown == NULL)
        return false;
    writing->locations = grown;
    writing->location_room = count * 2;
    return true;
}

/* Ids of a sample's locations, the innermost first; a count or -ENOMEM. */
static long find_locations(struct writing *writing, const struct vs_profile_sample *sample)
{
    const struct vs_frame *frames;
    long count =
        sample->stack == 0 ? 0 : vs_frames_of(writing->profile->frames, sample->stack, &frames);
    size_t found = 0;
    if (count < 0 || !make_room(writing, (size_t)count + 1))
        return -ENOMEM;
    for (size_t i = 0; i < (size_t)count;) {
        size_t lines = 1;
        while (frames[i + lines - 1].inlined && i + lines < (size_t)count)
            lines++;
        if (vs_profile_shows(&frames[i]))
            writing->locations[found++] = pprof_location(writing->tables, &frames[i], lines);
        i += lines;
    }
    if (found == 0)
        writing->locations[found++] =
            pprof_place(writing->tables, sample->stack == 0 ? sample->instead : "[no frames]");
    return (long)found;
}

static int put_sample(struct writing *writing, const struct vs_profile_sample *sample)
{
    uint64_t values[VS_METRICS];
    long count = find_locations(writing, sample);
    if (count < 0)
        return -ENOMEM;
    for (size_t i = 0; i < VS_METRICS; i++)
        values[i] = (uint64_t)sample->values[types[i].metric];
    vs_proto_clear(&writing->message);
    vs_proto_packed(&writing->message, SAMPLE_LOCATION, writing->locations, (size_t)count);
    vs_proto_packed(&writing->message, SAMPLE_VALUE, values, VS_METRICS);
    put_labels(writing, sample);
    vs_proto_put(writing->sink, PROFILE_SAMPLE, &writing->message);
    return writing->tables->failed ? -ENOMEM : writing->sink->error;
}

/* ---- the rest
 * --------------------------------------------------------------------------------------- */

static void put_number(struct writing *writing, uint32_t field, uint64_t value)
{
    /* A bare number of the outer message: what a message's fields are made of. */
    vs_proto_clear(&writing->message);
    vs_proto_count(&writing->message, field, value);
    vs_sink_put(writing->sink, writing->message.data, writing->message.used);
}

static void put_comment(struct writing *writing, const char *name, const char *value)
{
    char text[512];
    snprintf(text, sizeof(text), "vramscope: %s %s", name, value);
    put_number(writing, PROFILE_COMMENT, pprof_string_copy(writing->tables, text));
}

static void put_comments(struct writing *writing)
{
    char text[256];
    vs_export_at_text(writing->export, text, sizeof(text));
    put_comment(writing, "in use at", text);
    vs_export_filter_text(writing->export, text, sizeof(text));
    if (text[0] != 0)
        put_comment(writing, "only", text);
}

static void put_times(struct writing *writing)
{
    const struct vs_export *export = writing->export;
    const json_t *start = json_object_get(export->clock, "start");
    json_int_t realtime = json_integer_value(json_object_get(start, "realtime_ns"));
    if (realtime > 0)
        put_number(writing, PROFILE_TIME_NANOS, (uint64_t)realtime);
    put_number(writing, PROFILE_DURATION_NANOS,
               vs_export_since(export, writing->profile->instant_ns));
}

static int put_profile(struct writing *writing)
{
    struct vs_profile_sample sample;
    int result = 0;
    for (size_t i = 0; i < VS_METRICS; i++)
        put_type(writing, PROFILE_SAMPLE_TYPE, vs_export_metric_name(types[i].metric),
                 types[i].unit);
    while (result == 0 && vs_profile_next(writing->profile, &sample))
        result = put_sample(writing, &sample);
    put_times(writing);
    put_type(writing, PROFILE_PERIOD_TYPE, "space", "bytes");
    put_number(writing, PROFILE_PERIOD, 1);
    put_comments(writing);
    put_number(writing, PROFILE_DEFAULT_SAMPLE_TYPE,
               pprof_string(writing->tables, vs_export_metric_name(writing->export->metric)));
    if (result == 0)
        pprof_put_tables(writing->tables, writing->sink);
    return result != 0 ? result : writing->tables->failed || writing->message.failed ? -ENOMEM : 0;
}

int vs_export_pprof(struct vs_export *export)
{
    struct vs_profile profile;
    struct vs_gzip *gzip = NULL;
    struct writing writing = {.export = export, .profile = &profile};
    int result = vs_profile_make(export, &profile);
    if (result == 0)
        result = vs_gzip_new(export->sink, &gzip);
    if (result == 0)
        result = pprof_tables_new(export->reader,
                                  json_string_value(json_object_get(export->process, "exe")),
                                  &writing.tables);
    if (result == 0) {
        writing.sink = vs_gzip_sink(gzip);
        result = put_profile(&writing);
    }
    if (result == 0)
        result = vs_gzip_finish(gzip);
    pprof_tables_free(writing.tables);
    vs_proto_release(&writing.message);
    vs_proto_release(&writing.inner);
    free(writing.locations);
    vs_gzip_free(gzip);
    vs_profile_release(&profile);
    return result;
}
