/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a pickle of protocol 2 from the few opcodes that restricted readers accept:
 * numbers, texts, lists, dictionaries, pairs, and what was written before, by its
 * number. Errors stick to the sink.
 */
#ifndef VS_EXPORT_PICKLE_H
#define VS_EXPORT_PICKLE_H

#include <stdbool.h>

#include "replay/map.h"
#include "sink.h"

VS_MAP_DEFINE(vs_pickle_memos, uint32_t);

struct vs_pickle_content {
    const char *text;
    uint32_t memo; /* number + 1 */
};
VS_MAP_DEFINE(vs_pickle_contents, struct vs_pickle_content);

struct vs_pickle {
    struct vs_sink *sink;
    uint32_t kept;                      /* objects numbered so far */
    struct vs_pickle_memos texts;       /* by where they are in memory: number + 1 */
    struct vs_pickle_contents contents; /* by their hash */
};

void vs_pickle_begin(struct vs_pickle *pickle, struct vs_sink *sink);
/* Writes the end; the pickle holds nothing afterwards. */
void vs_pickle_end(struct vs_pickle *pickle);
/* The same without writing: after an error. */
void vs_pickle_release(struct vs_pickle *pickle);

void vs_pickle_number(struct vs_pickle *pickle, uint64_t value);
void vs_pickle_bool(struct vs_pickle *pickle, bool value);
/* Bytes that are no UTF-8 become U+FFFD. */
void vs_pickle_text(struct vs_pickle *pickle, const char *text);
/* A text that stays where it is and as it is: written once, then, and its equals, by its number. */
void vs_pickle_name(struct vs_pickle *pickle, const char *text);
uint64_t vs_pickle_hash(const char *text);
/* (first, second) */
void vs_pickle_pair(struct vs_pickle *pickle, uint64_t first, uint64_t second);

/* Numbers the object written last (a list or dictionary: when it was begun). */
uint32_t vs_pickle_keep(struct vs_pickle *pickle);
void vs_pickle_again(struct vs_pickle *pickle, uint32_t kept);

/* Between them a name and a value for each member. */
void vs_pickle_dict(struct vs_pickle *pickle);
void vs_pickle_members(struct vs_pickle *pickle);
void vs_pickle_dict_end(struct vs_pickle *pickle);

/*
 * A list: vs_pickle_item before each item. Readers take a batch of items as the
 * arguments of one call, so batches are short.
 */
struct vs_pickle_list {
    unsigned items; /* of the batch */
};
void vs_pickle_list(struct vs_pickle *pickle);
void vs_pickle_items(struct vs_pickle *pickle, struct vs_pickle_list *list);
void vs_pickle_item(struct vs_pickle *pickle, struct vs_pickle_list *list);
void vs_pickle_list_end(struct vs_pickle *pickle);

#endif
