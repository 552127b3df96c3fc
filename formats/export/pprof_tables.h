/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What samples of a pprof profile refer to: texts, functions, locations, mappings,
 * each once, numbered as they are met. Bounded by the places of the trace.
 */
#ifndef VS_EXPORT_PPROF_TABLES_H
#define VS_EXPORT_PPROF_TABLES_H

#include "arena.h"
#include "frames.h"
#include "replay/map.h"
#include "sink.h"

VS_MAP_DEFINE(pprof_index, uint32_t);

struct pprof_function {
    uint32_t name, file; /* texts */
};
struct pprof_line {
    uint32_t function, line;
};
struct pprof_location {
    uint32_t mapping; /* 0 none */
    uint32_t first_line, line_count;
    uint64_t address;
};
struct pprof_mapping {
    const struct vs_module_def *module;
    bool named, unnamed; /* some of its addresses are */
};

struct pprof_tables {
    const struct vs_reader *reader;
    const char **texts; /* the first is "" */
    struct pprof_function *functions;
    struct pprof_line *lines;
    struct pprof_location *locations;
    struct pprof_mapping *mappings;
    size_t text_count, text_room, function_count, function_room, line_count, line_room;
    size_t location_count, location_room, mapping_count, mapping_room;
    struct pprof_index text_index, function_index, location_index, module_index;
    struct vs_arena arena;
    bool failed; /* no memory */
};

/* The program's own object is the first mapping; `exe` may be NULL. 0 or -ENOMEM. */
int pprof_tables_new(const struct vs_reader *reader, const char *exe, struct pprof_tables **out);
void pprof_tables_free(struct pprof_tables *tables);

/* Index of a text that lives as long as the tables; of a copy of one that does not. */
uint32_t pprof_string(struct pprof_tables *tables, const char *text);
uint32_t pprof_string_copy(struct pprof_tables *tables, const char *text);
/* Id of the location of `count` frames, all but the last inlined into the next. */
uint64_t pprof_location(struct pprof_tables *tables, const struct vs_frame *frames, size_t count);
/* Id of a location that is a text and no code. */
uint64_t pprof_place(struct pprof_tables *tables, const char *text);

/* Writes all of them as fields of Profile. */
void pprof_put_tables(struct pprof_tables *tables, struct vs_sink *sink);

#endif
