/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The packets of a Perfetto trace, written one by one: tracks, events, and the
 * interned frames and callstacks they refer to, each once, before its first use.
 * Field numbers are those of protos/perfetto/trace in github.com/google/perfetto;
 * all packets are of one sequence, in CLOCK_MONOTONIC. Memory is bounded by the
 * stacks that were referred to.
 */
#ifndef VS_EXPORT_PERFETTO_PACKETS_H
#define VS_EXPORT_PERFETTO_PACKETS_H

#include "export.h"
#include "pprof_tables.h"
#include "proto.h"
#include "seen.h"

enum perfetto_event {
    PERFETTO_BEGIN = 1,
    PERFETTO_END = 2,
    PERFETTO_INSTANT = 3,
    PERFETTO_COUNTER = 4
};

struct perfetto_packets {
    struct vs_export *export;
    struct vs_frames *frames;
    struct pprof_tables *tables; /* numbers frames and mappings */
    struct vs_seen *stacks, *places;
    size_t mappings_put, locations_put;
    struct vs_proto packet, outer, inner, interned, stack;
    struct vs_proto event; /* between perfetto_event_begin and _end */
};

int perfetto_packets_new(struct vs_export *export, struct perfetto_packets *packets);
void perfetto_packets_release(struct perfetto_packets *packets);
/* 0, or the first error. */
int perfetto_packets_error(const struct perfetto_packets *packets);

/* The first packets: clocks, and what was left out. */
void perfetto_put_head(struct perfetto_packets *packets);

/* Tracks. `parent` 0: none. Names need not be UTF-8. */
void perfetto_put_process(struct perfetto_packets *packets, uint64_t track, uint64_t pid,
                          const char *name);
void perfetto_put_thread(struct perfetto_packets *packets, uint64_t track, uint64_t pid,
                         uint64_t thread, const char *name);
void perfetto_put_track(struct perfetto_packets *packets, uint64_t track, uint64_t parent,
                        const char *name);
void perfetto_put_byte_counter(struct perfetto_packets *packets, uint64_t track, uint64_t parent,
                               const char *name);

void perfetto_put_counter(struct perfetto_packets *packets, uint64_t track, uint64_t time_ns,
                          int64_t value);

/* An event with a name and what is known of it; `name` NULL for an end. */
void perfetto_event_begin(struct perfetto_packets *packets, enum perfetto_event type,
                          uint64_t track, const char *category, const char *name);
void perfetto_event_number(struct perfetto_packets *packets, const char *name, uint64_t value);
void perfetto_event_text(struct perfetto_packets *packets, const char *name, const char *value);
void perfetto_event_stack(struct perfetto_packets *packets, uint32_t stack);
void perfetto_event_end(struct perfetto_packets *packets, uint64_t time_ns);

/* Id of a stack's callstack, written if it is new; of one that is a text and no code. */
uint64_t perfetto_callstack(struct perfetto_packets *packets, uint32_t stack);
uint64_t perfetto_place(struct perfetto_packets *packets, const char *text);

/* One place of a heap profile; the last packet says that it is whole. */
struct perfetto_heap_sample {
    const char *heap;
    uint64_t pid, time_ns, callstack;
    int64_t allocated, freed, allocs, frees; /* bytes, and how many */
};
void perfetto_put_heap_sample(struct perfetto_packets *packets,
                              const struct perfetto_heap_sample *sample, uint64_t index);
void perfetto_put_heap_end(struct perfetto_packets *packets, uint64_t index);

#endif
