/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two column codings made for what a memory trace is full of: BACK for
 * values that come again (addresses, sizes), SPLIT for numbers that are mostly
 * noise (times, durations). docs/format.md §5 defines their bytes.
 */
#ifndef VS_FORMATS_TRACE_CODINGS_H
#define VS_FORMATS_TRACE_CODINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- BACK: how many places ago a value was there, or the value ------------------- */

/* `count` values as distances to the same value before, 0: not there before. */
struct vs_backs {
    uint64_t *distances;
    uint64_t *literals;
    size_t literal_count;
};

/* 0 or -ENOMEM. Free with vs_backs_free. */
int vs_backs_find(const uint64_t *values, size_t count, struct vs_backs *out);
void vs_backs_free(struct vs_backs *backs);

size_t vs_back_bound(size_t count, size_t literal_count); /* bytes at most */
uint8_t *vs_back_put(uint8_t *out, const struct vs_backs *backs, size_t count);
int vs_back_get(const uint8_t *at, const uint8_t *end, uint64_t *values, size_t count);

/* ---- SPLIT: a byte for the leading bits of each value, then the bits below them --- */

size_t vs_split_bound(size_t count);
/* `delta`: of the differences to the value before. */
uint8_t *vs_split_put(uint8_t *out, const uint64_t *values, size_t count, bool delta);
int vs_split_get(const uint8_t *at, const uint8_t *end, uint64_t *values, size_t count, bool delta);
/* Bytes before the first of the leading ones of `count` values; 0 when it is none. */
size_t vs_split_lead(const uint8_t *at, const uint8_t *end, uint64_t *count);

#endif
