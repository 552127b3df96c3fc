/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading words and sizes out of text. A cursor never passes the text's end;
 * nothing here allocates.
 */
#ifndef VS_EXPLAIN_SCAN_H
#define VS_EXPLAIN_SCAN_H

#include "message.h"

struct cursor {
    const char *at, *end;
};

static inline struct cursor cursor_of(const char *text, size_t length)
{
    return (struct cursor){text, text + length};
}

/* Skips blanks. */
void cursor_blank(struct cursor *cursor);
/* Steps over `word` if it is next. */
bool cursor_take(struct cursor *cursor, const char *word);
/* Moves behind the next `word` within `reach` bytes; else stays. */
bool cursor_find(struct cursor *cursor, const char *word, size_t reach);
/* True if `word` follows within `reach` bytes. */
bool cursor_has(struct cursor cursor, const char *word, size_t reach);
/* A whole number, commas allowed between groups of three digits; stays where there is none. */
bool cursor_count(struct cursor *cursor, uint64_t *value);
/* "1.65 GiB", "25,600,000 bytes", "1,65 GiB", "2G", "0B"; units are powers of 1024. No unit: bytes.
 */
struct amount cursor_amount(struct cursor *cursor);
/* The same, `unit` where none is written: "3.22" of "3.22/4.0 GiB". */
struct amount cursor_amount_in(struct cursor *cursor, const char *unit);
/* The amount behind `word` within `reach` bytes; unknown where there is none. */
struct amount amount_after(struct cursor cursor, const char *word, size_t reach);
/* The amount that ends right before `word`, e.g. "5.22 GiB already allocated". */
struct amount amount_before(struct cursor cursor, const char *word, size_t reach);

#endif
