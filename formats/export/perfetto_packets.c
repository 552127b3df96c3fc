/* SPDX-License-Identifier: Apache-2.0 */
/* Writes Perfetto's packets: see perfetto_packets.h. */
#include "perfetto_packets.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "profile.h"
#include "texts.h"

enum { TRACE_PACKET = 1 };
enum {
    PACKET_CLOCK_SNAPSHOT = 6,
    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE = 10,
    PACKET_TRACK_EVENT = 11,
    PACKET_INTERNED = 12,
    PACKET_SEQUENCE_FLAGS = 13,
    PACKET_PROFILE = 37,
    PACKET_DEFAULTS = 59,
    PACKET_TRACK = 60,
    PACKET_FIRST = 87,
    PACKET_ATTRIBUTES = 126
};
enum { FLAG_CLEARED = 1, FLAG_NEEDED = 2, SEQUENCE = 1 };
enum { CLOCK_ID = 1, CLOCK_TIMESTAMP = 2, SNAPSHOT_CLOCKS = 1, SNAPSHOT_PRIMARY = 2 };
enum { REALTIME = 1, MONOTONIC = 3, MONOTONIC_COARSE = 4, BOOTTIME = 6 };
enum { DEFAULTS_CLOCK = 58 };
enum { ATTRIBUTES_ONE = 1, ATTRIBUTE_KEY = 1, ATTRIBUTE_TEXT = 3 };
enum {
    TRACK_UUID = 1,
    TRACK_NAME = 2,
    TRACK_PROCESS = 3,
    TRACK_THREAD = 4,
    TRACK_PARENT = 5,
    TRACK_COUNTER = 8
};
enum { PROCESS_PID = 1, PROCESS_NAME = 6, THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5 };
enum { COUNTER_UNIT = 3, UNIT_SIZE_BYTES = 3 };
enum {
    EVENT_ANNOTATION = 4,
    EVENT_TYPE = 9,
    EVENT_TRACK = 11,
    EVENT_CATEGORY = 22,
    EVENT_NAME = 23,
    EVENT_COUNTER_VALUE = 30,
    EVENT_CALLSTACK = 56
};
enum { ANNOTATION_NUMBER = 3, ANNOTATION_TEXT = 6, ANNOTATION_NAME = 10 };
enum {
    INTERNED_FUNCTION_NAME = 5,
    INTERNED_FRAME = 6,
    INTERNED_CALLSTACK = 7,
    INTERNED_BUILD_ID = 16,
    INTERNED_PATH = 17,
    INTERNED_SOURCE = 18,
    INTERNED_MAPPING = 19
};
enum { STRING_IID = 1, STRING_TEXT = 2 };
enum {
    MAPPING_IID = 1,
    MAPPING_BUILD_ID = 2,
    MAPPING_START = 4,
    MAPPING_END = 5,
    MAPPING_PATH = 7
};
enum {
    FRAME_IID = 1,
    FRAME_FUNCTION = 2,
    FRAME_MAPPING = 3,
    FRAME_RELATIVE_PC = 4,
    FRAME_SOURCE = 5,
    FRAME_LINE = 6
};
enum { CALLSTACK_IID = 1, CALLSTACK_FRAMES = 2 };
enum { PROFILE_DUMPS = 5, PROFILE_CONTINUED = 6, PROFILE_INDEX = 7 };
enum { DUMP_PID = 1, DUMP_SAMPLES = 2, DUMP_TIMESTAMP = 9, DUMP_HEAP_NAME = 11 };
enum {
    SAMPLE_CALLSTACK = 1,
    SAMPLE_ALLOCATED = 2,
    SAMPLE_FREED = 3,
    SAMPLE_ALLOC_COUNT = 5,
    SAMPLE_FREE_COUNT = 6
};

/* Frames of no object: a reader drops a frame without a mapping, so they have one that says so. */
enum { MAPPING_NONE = 1, MAPPINGS_FIRST = 2 };
/* Callstacks that are a text and no stack of the trace. */
#define PLACES_FIRST (1ULL << 33)

/* ---- packets ------------------------------------------------------------------------------ */

static void begin_packet(struct perfetto_packets *packets)
{
    vs_proto_clear(&packets->packet);
    vs_proto_number(&packets->packet, PACKET_SEQUENCE, SEQUENCE);
    vs_proto_number(&packets->packet, PACKET_SEQUENCE_FLAGS, FLAG_NEEDED);
}

static void end_packet(struct perfetto_packets *packets)
{
    vs_proto_put(packets->export->sink, TRACE_PACKET, &packets->packet);
}

/* Fields of type `string` must be UTF-8; those of names in stacks are bytes. */
static void put_utf8(struct vs_proto *message, uint32_t field, const char *text)
{
    char clean[512];
    size_t used = 0;
    while (*text != 0 && used + 4 < sizeof(clean)) {
        size_t bytes = vs_utf8_sequence(text);
        memcpy(clean + used, bytes == 0 ? "?" : text, bytes == 0 ? 1 : bytes);
        used += bytes == 0 ? 1 : bytes;
        text += bytes == 0 ? 1 : bytes;
    }
    vs_proto_bytes(message, field, clean, used);
}

int perfetto_packets_new(struct vs_export *export, struct perfetto_packets *packets)
{
    *packets = (struct perfetto_packets){.export = export};
    packets->stacks = calloc(1, sizeof(*packets->stacks));
    packets->places = calloc(1, sizeof(*packets->places));
    if (packets->stacks == NULL || packets->places == NULL)
        return -ENOMEM;
    int result = vs_frames_new(export->reader, &packets->frames);
    return result != 0 ? result : pprof_tables_new(export->reader, NULL, &packets->tables);
}

void perfetto_packets_release(struct perfetto_packets *packets)
{
    vs_frames_free(packets->frames);
    pprof_tables_free(packets->tables);
    if (packets->stacks != NULL)
        vs_seen_release(packets->stacks);
    if (packets->places != NULL)
        vs_seen_release(packets->places);
    free(packets->stacks);
    free(packets->places);
    vs_proto_release(&packets->packet);
    vs_proto_release(&packets->outer);
    vs_proto_release(&packets->inner);
    vs_proto_release(&packets->interned);
    vs_proto_release(&packets->event);
    vs_proto_release(&packets->stack);
}

int perfetto_packets_error(const struct perfetto_packets *packets)
{
    return packets->tables->failed ? -ENOMEM : packets->export->sink->error;
}

static void put_clock(struct perfetto_packets *packets, uint64_t clock, uint64_t time_ns)
{
    if (time_ns == 0)
        return;
    vs_proto_clear(&packets->inner);
    vs_proto_number(&packets->inner, CLOCK_ID, clock);
    vs_proto_number(&packets->inner, CLOCK_TIMESTAMP, time_ns);
    vs_proto_message(&packets->outer, SNAPSHOT_CLOCKS, &packets->inner);
}

static uint64_t start_of(const struct vs_export *export, const char *clock)
{
    json_int_t value =
        json_integer_value(json_object_get(json_object_get(export->clock, "start"), clock));
    return value > 0 ? (uint64_t)value : 0;
}

static void put_attribute(struct perfetto_packets *packets, const char *key, const char *value)
{
    vs_proto_clear(&packets->inner);
    vs_proto_text(&packets->inner, ATTRIBUTE_KEY, key);
    put_utf8(&packets->inner, ATTRIBUTE_TEXT, value);
    vs_proto_message(&packets->outer, ATTRIBUTES_ONE, &packets->inner);
}

static void put_no_mapping(struct perfetto_packets *packets)
{
    static const char path[] = "[no object]";
    vs_proto_clear(&packets->interned);
    vs_proto_clear(&packets->inner);
    vs_proto_number(&packets->inner, STRING_IID, MAPPING_NONE);
    vs_proto_text(&packets->inner, STRING_TEXT, path);
    vs_proto_message(&packets->interned, INTERNED_PATH, &packets->inner);
    vs_proto_clear(&packets->inner);
    vs_proto_number(&packets->inner, MAPPING_IID, MAPPING_NONE);
    vs_proto_number(&packets->inner, MAPPING_PATH, MAPPING_NONE);
    vs_proto_message(&packets->interned, INTERNED_MAPPING, &packets->inner);
}

void perfetto_put_head(struct perfetto_packets *packets)
{
    const struct vs_export *export = packets->export;
    struct vs_proto *packet = &packets->packet;
    char text[256];
    put_no_mapping(packets);
    vs_proto_clear(packet);
    vs_proto_number(packet, PACKET_SEQUENCE, SEQUENCE);
    vs_proto_number(packet, PACKET_SEQUENCE_FLAGS, FLAG_CLEARED);
    vs_proto_number(packet, PACKET_FIRST, 1);
    vs_proto_clear(&packets->outer);
    vs_proto_number(&packets->outer, DEFAULTS_CLOCK, MONOTONIC);
    vs_proto_message(packet, PACKET_DEFAULTS, &packets->outer);
    vs_proto_message(packet, PACKET_INTERNED, &packets->interned);
    end_packet(packets);

    begin_packet(packets);
    vs_proto_clear(&packets->outer);
    put_clock(packets, MONOTONIC, export->start_ns);
    put_clock(packets, MONOTONIC_COARSE, export->start_ns); /* heap profiles are in it */
    put_clock(packets, BOOTTIME, start_of(export, "boot_ns"));
    put_clock(packets, REALTIME, start_of(export, "real_ns"));
    vs_proto_number(&packets->outer, SNAPSHOT_PRIMARY, MONOTONIC);
    vs_proto_message(packet, PACKET_CLOCK_SNAPSHOT, &packets->outer);
    end_packet(packets);

    begin_packet(packets);
    vs_proto_clear(&packets->outer);
    vs_export_at_text(export, text, sizeof(text));
    put_attribute(packets, "vramscope.heap_profile_at", text);
    vs_export_filter_text(export, text, sizeof(text));
    if (text[0] != 0)
        put_attribute(packets, "vramscope.only", text);
    vs_proto_message(packet, PACKET_ATTRIBUTES, &packets->outer);
    end_packet(packets);
}

/* ---- tracks ------------------------------------------------------------------------------- */

static void begin_track(struct perfetto_packets *packets, uint64_t track, uint64_t parent)
{
    begin_packet(packets);
    vs_proto_clear(&packets->outer);
    vs_proto_number(&packets->outer, TRACK_UUID, track);
    vs_proto_count(&packets->outer, TRACK_PARENT, parent);
}

static void end_track(struct perfetto_packets *packets)
{
    vs_proto_message(&packets->packet, PACKET_TRACK, &packets->outer);
    end_packet(packets);
}

void perfetto_put_process(struct perfetto_packets *packets, uint64_t track, uint64_t pid,
                          const char *name)
{
    begin_track(packets, track, 0);
    vs_proto_clear(&packets->inner);
    vs_proto_number(&packets->inner, PROCESS_PID, pid);
    put_utf8(&packets->inner, PROCESS_NAME, name);
    vs_proto_message(&packets->outer, TRACK_PROCESS, &packets->inner);
    end_track(packets);
}

void perfetto_put_thread(struct perfetto_packets *packets, uint64_t track, uint64_t pid,
                         uint64_t thread, const char *name)
{
    begin_track(packets, track, 0);
    vs_proto_clear(&packets->inner);
    vs_proto_number(&packets->inner, THREAD_PID, pid);
    vs_proto_number(&packets->inner, THREAD_TID, thread);
    if (name != NULL)
        put_utf8(&packets->inner, THREAD_NAME, name);
    vs_proto_message(&packets->outer, TRACK_THREAD, &packets->inner);
    end_track(packets);
}

void perfetto_put_track(struct perfetto_packets *packets, uint64_t track, uint64_t parent,
                        const char *name)
{
    begin_track(packets, track, parent);
    put_utf8(&packets->outer, TRACK_NAME, name);
    end_track(packets);
}

void perfetto_put_byte_counter(struct perfetto_packets *packets, uint64_t track, uint64_t parent,
                               const char *name)
{
    begin_track(packets, track, parent);
    put_utf8(&packets->outer, TRACK_NAME, name);
    vs_proto_clear(&packets->inner);
    vs_proto_number(&packets->inner, COUNTER_UNIT, UNIT_SIZE_BYTES);
    vs_proto_message(&packets->outer, TRACK_COUNTER, &packets->inner);
    end_track(packets);
}

/* ---- events ------------------------------------------------------------------------------- */

void perfetto_put_counter(struct perfetto_packets *packets, uint64_t track, uint64_t time_ns,
                          int64_t value)
{
    vs_proto_clear(&packets->outer);
    vs_proto_number(&packets->outer, EVENT_TYPE, PERFETTO_COUNTER);
    vs_proto_number(&packets->outer, EVENT_TRACK, track);
    vs_proto_signed(&packets->outer, EVENT_COUNTER_VALUE, value);
    begin_packet(packets);
    vs_proto_number(&packets->packet, PACKET_TIMESTAMP, time_ns);
    vs_proto_message(&packets->packet, PACKET_TRACK_EVENT, &packets->outer);
    end_packet(packets);
}

void perfetto_event_begin(struct perfetto_packets *packets, enum perfetto_event type,
                          uint64_t track, const char *category, const char *name)
{
    vs_proto_clear(&packets->event);
    vs_proto_number(&packets->event, EVENT_TYPE, type);
    vs_proto_number(&packets->event, EVENT_TRACK, track);
    if (name == NULL)
        return;
    vs_proto_text(&packets->event, EVENT_CATEGORY, category);
    put_utf8(&packets->event, EVENT_NAME, name);
}

void perfetto_event_number(struct perfetto_packets *packets, const char *name, uint64_t value)
{
    vs_proto_clear(&packets->inner);
    vs_proto_text(&packets->inner, ANNOTATION_NAME, name);
    vs_proto_number(&packets->inner, ANNOTATION_NUMBER, value);
    vs_proto_message(&packets->event, EVENT_ANNOTATION, &packets->inner);
}

void perfetto_event_text(struct perfetto_packets *packets, const char *name, const char *value)
{
    vs_proto_clear(&packets->inner);
    vs_proto_text(&packets->inner, ANNOTATION_NAME, name);
    put_utf8(&packets->inner, ANNOTATION_TEXT, value);
    vs_proto_message(&packets->event, EVENT_ANNOTATION, &packets->inner);
}

void perfetto_event_stack(struct perfetto_packets *packets, uint32_t stack)
{
    if (stack != 0)
        vs_proto_number(&packets->event, EVENT_CALLSTACK, perfetto_callstack(packets, stack));
}

void perfetto_event_end(struct perfetto_packets *packets, uint64_t time_ns)
{
    begin_packet(packets);
    vs_proto_number(&packets->packet, PACKET_TIMESTAMP, time_ns);
    vs_proto_message(&packets->packet, PACKET_TRACK_EVENT, &packets->event);
    end_packet(packets);
}

/* ---- stacks ------------------------------------------------------------------------------- */

static void put_string(struct perfetto_packets *packets, uint32_t field, uint64_t iid,
                       const void *text, size_t bytes)
{
    vs_proto_clear(&packets->inner);
    vs_proto_number(&packets->inner, STRING_IID, iid);
    vs_proto_bytes(&packets->inner, STRING_TEXT, text, bytes);
    vs_proto_message(&packets->interned, field, &packets->inner);
}

static void put_new_mappings(struct perfetto_packets *packets)
{
    const struct pprof_tables *tables = packets->tables;
    for (; packets->mappings_put < tables->mapping_count; packets->mappings_put++) {
        const struct vs_module_def *module = tables->mappings[packets->mappings_put].module;
        uint64_t iid = packets->mappings_put + MAPPINGS_FIRST;
        put_string(packets, INTERNED_PATH, iid, module->path, strlen(module->path));
        if (module->build_id_bytes != 0)
            put_string(packets, INTERNED_BUILD_ID, iid, module->build_id, module->build_id_bytes);
        vs_proto_clear(&packets->inner);
        vs_proto_number(&packets->inner, MAPPING_IID, iid);
        if (module->build_id_bytes != 0)
            vs_proto_number(&packets->inner, MAPPING_BUILD_ID, iid);
        vs_proto_number(&packets->inner, MAPPING_START, module->start);
        vs_proto_number(&packets->inner, MAPPING_END, module->end);
        vs_proto_number(&packets->inner, MAPPING_PATH, iid);
        vs_proto_message(&packets->interned, INTERNED_MAPPING, &packets->inner);
    }
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

/* As folded stacks name it: readers show this text, and join frames of the same. */
static int frame_label(const struct vs_frame *frame, char *out, size_t room)
{
    const char *module = frame->module == NULL ? "?" : file_name(frame->module);
    const char *name = frame->function == NULL ? "?" : frame->function;
    if (frame->kind == VS_FRAME_NOTE)
        return snprintf(out, room, "[%s]", name);
    if (frame->kind == VS_FRAME_PYTHON && frame->file == NULL)
        return snprintf(out, room, "%s", name);
    if (frame->kind == VS_FRAME_PYTHON && frame->line != 0)
        return snprintf(out, room, "%s (%s:%" PRIu32 ")", name, frame->file, frame->line);
    if (frame->kind == VS_FRAME_PYTHON)
        return snprintf(out, room, "%s (%s)", name, frame->file);
    if (frame->function == NULL)
        return snprintf(out, room, "%s+0x%" PRIx64, module, frame->address);
    return snprintf(out, room, "%s (%s)", name, module);
}

/* A frame's id is its location's; it names its own texts by the same number. */
static void put_frame(struct perfetto_packets *packets, uint64_t iid, const struct vs_frame *frame)
{
    char label[4096];
    int length = frame_label(frame, label, sizeof(label));
    size_t bytes = length < 0 ? 0 : (size_t)length;
    const struct pprof_location *location = &packets->tables->locations[iid - 1];
    put_new_mappings(packets);
    put_string(packets, INTERNED_FUNCTION_NAME, iid, label,
               bytes < sizeof(label) ? bytes : sizeof(label) - 1);
    if (frame->file != NULL)
        put_string(packets, INTERNED_SOURCE, iid, frame->file, strlen(frame->file));
    vs_proto_clear(&packets->inner);
    vs_proto_number(&packets->inner, FRAME_IID, iid);
    vs_proto_number(&packets->inner, FRAME_FUNCTION, iid);
    vs_proto_number(&packets->inner, FRAME_MAPPING,
                    location->mapping == 0 ? MAPPING_NONE : location->mapping - 1 + MAPPINGS_FIRST);
    if (frame->kind == VS_FRAME_NATIVE)
        vs_proto_number(&packets->inner, FRAME_RELATIVE_PC, frame->address);
    if (frame->file != NULL)
        vs_proto_number(&packets->inner, FRAME_SOURCE, iid);
    vs_proto_count(&packets->inner, FRAME_LINE, frame->line);
    vs_proto_message(&packets->interned, INTERNED_FRAME, &packets->inner);
}

/* The id of a frame, written if it is new. */
static uint64_t frame_of(struct perfetto_packets *packets, const struct vs_frame *frame)
{
    size_t known = packets->tables->location_count;
    uint64_t iid = pprof_location(packets->tables, frame, 1);
    if (iid > known)
        put_frame(packets, iid, frame);
    return iid;
}

static void begin_callstack(struct perfetto_packets *packets)
{
    vs_proto_clear(&packets->interned);
    vs_proto_clear(&packets->stack);
}

/* Readers take what is interned from any packet before its first use. */
static void end_callstack(struct perfetto_packets *packets, uint64_t iid)
{
    vs_proto_number(&packets->stack, CALLSTACK_IID, iid);
    vs_proto_message(&packets->interned, INTERNED_CALLSTACK, &packets->stack);
    begin_packet(packets);
    vs_proto_message(&packets->packet, PACKET_INTERNED, &packets->interned);
    end_packet(packets);
}

static bool is_new(struct perfetto_packets *packets, struct vs_seen *seen, uint64_t id)
{
    int fresh = vs_seen_add(seen, (uint32_t)id);
    if (fresh < 0)
        packets->tables->failed = true;
    return fresh > 0;
}

uint64_t perfetto_place(struct perfetto_packets *packets, const char *text)
{
    struct vs_frame frame = {.kind = VS_FRAME_PYTHON, .function = text}; /* shown as it is */
    begin_callstack(packets);
    uint64_t location = frame_of(packets, &frame), iid = PLACES_FIRST + location;
    if (is_new(packets, packets->places, location)) {
        vs_proto_number(&packets->stack, CALLSTACK_FRAMES, location);
        end_callstack(packets, iid);
    }
    return iid;
}

/* The outermost frame comes first. */
uint64_t perfetto_callstack(struct perfetto_packets *packets, uint32_t stack)
{
    static const struct vs_frame nothing = {.kind = VS_FRAME_NOTE, .function = "no frames"};
    const struct vs_frame *frames;
    bool any = false;
    if (!is_new(packets, packets->stacks, stack))
        return stack;
    long count = vs_frames_of(packets->frames, stack, &frames);
    if (count < 0)
        packets->tables->failed = true;
    begin_callstack(packets);
    for (long i = count; i-- > 0;) {
        if (!vs_profile_shows(&frames[i]))
            continue;
        vs_proto_number(&packets->stack, CALLSTACK_FRAMES, frame_of(packets, &frames[i]));
        any = true;
    }
    if (!any)
        vs_proto_number(&packets->stack, CALLSTACK_FRAMES, frame_of(packets, &nothing));
    end_callstack(packets, stack);
    return stack;
}

/* ---- heap profiles ------------------------------------------------------------------------ */

static void begin_profile(struct perfetto_packets *packets, uint64_t index)
{
    begin_packet(packets);
    vs_proto_clear(&packets->outer);
    vs_proto_number(&packets->outer, PROFILE_INDEX, index);
}

static void end_profile(struct perfetto_packets *packets)
{
    vs_proto_message(&packets->packet, PACKET_PROFILE, &packets->outer);
    end_packet(packets);
}

void perfetto_put_heap_sample(struct perfetto_packets *packets,
                              const struct perfetto_heap_sample *sample, uint64_t index)
{
    begin_profile(packets, index);
    vs_proto_clear(&packets->stack);
    vs_proto_number(&packets->stack, SAMPLE_CALLSTACK, sample->callstack);
    vs_proto_signed(&packets->stack, SAMPLE_ALLOCATED, sample->allocated);
    vs_proto_signed(&packets->stack, SAMPLE_FREED, sample->freed);
    vs_proto_signed(&packets->stack, SAMPLE_ALLOC_COUNT, sample->allocs);
    vs_proto_signed(&packets->stack, SAMPLE_FREE_COUNT, sample->frees);
    vs_proto_clear(&packets->inner);
    vs_proto_number(&packets->inner, DUMP_PID, sample->pid);
    vs_proto_message(&packets->inner, DUMP_SAMPLES, &packets->stack);
    vs_proto_number(&packets->inner, DUMP_TIMESTAMP, sample->time_ns);
    vs_proto_text(&packets->inner, DUMP_HEAP_NAME, sample->heap);
    vs_proto_message(&packets->outer, PROFILE_DUMPS, &packets->inner);
    vs_proto_number(&packets->outer, PROFILE_CONTINUED, 1);
    end_profile(packets);
}

void perfetto_put_heap_end(struct perfetto_packets *packets, uint64_t index)
{
    begin_profile(packets, index);
    end_profile(packets);
}
