/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of a trace: which words of them are private, and what stands in their place. */
#ifndef VS_FORMATS_REDACT_TEXT_H
#define VS_FORMATS_REDACT_TEXT_H

#include "redact.h"
#include "trace_columns.h"

struct vs_private_word {
    char *text;
    bool title; /* a process's title or the name of its program; else a host or a user */
};

struct vs_private_words {
    struct vs_private_word *items;
    size_t count, room;
};

/* Looks for hosts, users and titles in a row. 0 or -ENOMEM. */
int vs_private_words_note(struct vs_private_words *words, uint16_t chunk_type,
                          const struct vs_table_row *row);
void vs_private_words_free(struct vs_private_words *words);

/* The user whose home a path is in: its place and length; 0 when there is none. */
size_t vs_private_user(const char *path, const char **user);

struct vs_redacting {
    const struct vs_private_words *words;
    struct vs_redacted *counts;
    struct vs_bytes text, scratch;
};

/*
 * Puts what may be shown in the place of the texts of `row`; they stay valid until
 * the next call. 1, 0 when the row cannot be shown at all, or -ENOMEM.
 */
int vs_redact_row(struct vs_redacting *redacting, uint16_t chunk_type, struct vs_table_row *row);
void vs_redacting_free(struct vs_redacting *redacting);

#endif
