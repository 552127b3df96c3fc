/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names that ids in events stand for, written once the way a format quotes
 * them: rows then cost a copy. Bounded by the names of the trace.
 */
#ifndef VS_EXPORT_TEXTS_H
#define VS_EXPORT_TEXTS_H

#include "arena.h"
#include "export.h"

/* Bytes of the UTF-8 sequence at `at`, 0 when it is none. */
size_t vs_utf8_sequence(const char *at);

/* A quoted text; `data` NULL when there is no memory. */
struct vs_quoted {
    const char *data;
    size_t bytes;
};

VS_MAP_DEFINE(vs_quoted_map, struct vs_quoted);

/* Writes `text` quoted to `out`, which has room for 6 bytes for each of it and 2 more. */
typedef char *vs_quote(char *out, const char *text);
char *vs_quote_csv(char *out, const char *text);
/* With the quotation marks; bytes that are no UTF-8 become U+FFFD. */
char *vs_quote_json(char *out, const char *text);
void vs_sink_json_text(struct vs_sink *sink, const char *text);

struct vs_texts {
    const struct vs_export *export;
    vs_quote *quote;
    struct vs_quoted strings[UINT16_MAX + 1]; /* calls, by string id */
    struct vs_quoted_map others;              /* string ids above, and modules */
    struct vs_arena arena;
    bool failed; /* no memory */
};

struct vs_texts *vs_texts_new(const struct vs_export *export, vs_quote *quote);
void vs_texts_free(struct vs_texts *texts);
/* Empty (data "", 0 bytes) for id 0 and ids that are not defined. */
struct vs_quoted vs_texts_string(struct vs_texts *texts, uint32_t id);
struct vs_quoted vs_texts_module(struct vs_texts *texts, uint32_t id);

/*
 * What a row calls an event: the outermost call; of a loss the kind of what was
 * lost; of a mark or phase its text.
 */
struct vs_quoted vs_texts_label(struct vs_texts *texts, const struct vs_event *event);
/* Error name of a result that is not 0, unquoted. */
const char *vs_export_error(const struct vs_export *export, const struct vs_event *event,
                            char *buffer, size_t bytes);

#endif
