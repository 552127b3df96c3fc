/* SPDX-License-Identifier: Apache-2.0 */
/* Column codings: every coding gives back what it was given, and refuses what does not fit. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trace_columns.h"

enum { COUNT = 300 };

static struct vs_column only_column(const struct vs_bytes *payload)
{
    const uint8_t *at = payload->data;
    struct vs_column column;
    cr_assert_eq(vs_column_next(&at, payload->data + payload->bytes, &column), 1);
    struct vs_column rest;
    cr_assert_eq(vs_column_next(&at, payload->data + payload->bytes, &rest), 0);
    return column;
}

static void round_trip_natured(const uint64_t *values, enum vs_column_nature nature,
                               enum vs_coding expected)
{
    struct vs_bytes payload = {0};
    uint64_t back[COUNT];
    cr_assert_eq(vs_column_put_natured(&payload, 300, values, COUNT, nature), 0);
    struct vs_column column = only_column(&payload);
    cr_assert_eq(column.id, 300);
    cr_assert_eq(column.coding, expected);
    cr_assert_eq(vs_column_values(&column, back, COUNT), 0);
    cr_assert_arr_eq(values, back, sizeof back);
    vs_bytes_free(&payload);
}

static void round_trip(const uint64_t *values, enum vs_coding expected)
{
    round_trip_natured(values, VS_NATURE_ANY, expected);
}

Test(columns, extremes_as_varints)
{
    uint64_t values[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        values[i] = i % 2 == 0 ? i % 128 : 1ULL << (62 - i % 5);
    values[COUNT - 1] = UINT64_MAX;
    round_trip(values, VS_CODING_VARINT);
}

Test(columns, growing_values_as_deltas)
{
    uint64_t values[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        values[i] = 0xffffffff00000000 + i * i;
    round_trip(values, VS_CODING_DELTA);
}

Test(columns, wrapping_differences)
{
    uint64_t values[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        values[i] = (i % 2 ? UINT64_MAX - i : i);
    round_trip(values, VS_CODING_DELTA);
}

Test(columns, equal_values_as_runs)
{
    uint64_t values[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        values[i] = i < 200 ? 7000 : 1ULL << 63;
    round_trip(values, VS_CODING_RUNS);
}

Test(columns, equal_steps_as_runs_of_deltas)
{
    uint64_t values[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        values[i] = 1000000 + 2 * i;
    round_trip(values, VS_CODING_DELTA_RUNS);
}

Test(columns, recurring_values_by_their_distance)
{
    uint64_t values[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        values[i] = i * i % 97 * 512 + (1ULL << 46);
    values[COUNT - 1] = UINT64_MAX;
    values[COUNT - 2] = 0;
    round_trip_natured(values, VS_NATURE_RECURRING, VS_CODING_BACK);
    for (size_t i = 0; i < COUNT; i++)
        values[i] = UINT64_MAX / COUNT * i;
    round_trip_natured(values, VS_NATURE_RECURRING, VS_CODING_DELTA_RUNS);
    for (size_t i = 0; i < COUNT; i++)
        values[i] = i * i * i * 0x9e3779b97f4a7c15U;
    round_trip_natured(values, VS_NATURE_RECURRING, VS_CODING_DELTA);
}

Test(columns, noise_by_its_leading_bits)
{
    uint64_t values[COUNT];
    for (size_t i = 0; i < COUNT; i++) /* every width, all bits different */
        values[i] = (i * i + 1) * 0x9e3779b97f4a7c15U >> i % 64;
    round_trip_natured(values, VS_NATURE_NOISE, VS_CODING_SPLIT);
    round_trip_natured(values, VS_NATURE_CLOCK, VS_CODING_SPLIT_DELTA);
    values[0] = UINT64_MAX;
    values[1] = 0;
    values[COUNT - 1] = UINT64_MAX / 2;
    round_trip_natured(values, VS_NATURE_NOISE, VS_CODING_SPLIT);
    round_trip_natured(values, VS_NATURE_CLOCK, VS_CODING_SPLIT_DELTA);
}

Test(columns, a_common_unit_costs_no_bits)
{
    uint64_t fine[COUNT], coarse[COUNT];
    struct vs_bytes payload = {0};
    for (size_t i = 0; i < COUNT; i++) {
        fine[i] = (i > 0 ? fine[i - 1] : 7) + i * i % 331;
        coarse[i] = fine[i] * 1000;
    }
    round_trip_natured(coarse, VS_NATURE_CLOCK, VS_CODING_SPLIT_DELTA);
    cr_assert_eq(vs_column_put_natured(&payload, 1, fine, COUNT, VS_NATURE_CLOCK), 0);
    size_t fine_bytes = payload.bytes;
    payload.bytes = 0;
    cr_assert_eq(vs_column_put_natured(&payload, 1, coarse, COUNT, VS_NATURE_CLOCK), 0);
    cr_assert_leq(payload.bytes, fine_bytes + 8);
    vs_bytes_free(&payload);
}

/* Whatever is cut off or changed: an error or other values, never a read outside. */
Test(columns, damaged_codings_stay_inside)
{
    uint64_t values[COUNT], back[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        values[i] = i * i % 97 * 5123;
    for (int nature = VS_NATURE_RECURRING; nature <= VS_NATURE_NOISE; nature++) {
        struct vs_bytes payload = {0};
        cr_assert_eq(
            vs_column_put_natured(&payload, 1, values, COUNT, (enum vs_column_nature)nature), 0);
        struct vs_column column = only_column(&payload);
        for (size_t cut = 0; cut < column.bytes; cut++) {
            uint8_t *copy = malloc(cut + 1); /* its end is the heap's, so that a sanitizer sees */
            memcpy(copy, column.data, cut);
            struct vs_column part = {1, column.coding, copy, cut};
            cr_assert_eq(vs_column_values(&part, back, COUNT), -EBADMSG, "cut at %zu", cut);
            free(copy);
        }
        for (size_t at = 0; at < column.bytes; at++) {
            payload.data[payload.bytes - column.bytes + at] ^= 0xff;
            vs_column_values(&column, back, COUNT);
            payload.data[payload.bytes - column.bytes + at] ^= 0xff;
        }
        cr_assert_eq(vs_column_values(&column, back, COUNT), 0);
        vs_bytes_free(&payload);
    }
}

Test(columns, all_zero_is_absent)
{
    const uint64_t values[COUNT] = {0};
    struct vs_bytes payload = {0};
    cr_assert_eq(vs_column_put(&payload, 1, values, COUNT), 0);
    cr_assert_eq(vs_column_put_bytes(&payload, 2, "", 0), 0);
    cr_assert_eq(payload.bytes, 0);
}

Test(columns, a_wrong_count_is_refused)
{
    const uint64_t values[] = {5, 5, 5, 9, 1, 2};
    struct vs_bytes payload = {0};
    uint64_t back[8];
    cr_assert_eq(vs_column_put(&payload, 1, values, 6), 0);
    struct vs_column column = only_column(&payload);
    cr_assert_eq(vs_column_values(&column, back, 5), -EBADMSG);
    cr_assert_eq(vs_column_values(&column, back, 7), -EBADMSG);
    cr_assert_eq(vs_column_values(&column, back, 6), 0);
    vs_bytes_free(&payload);
}

static int values_of(uint8_t coding, const char *bytes, size_t size, size_t count)
{
    uint64_t back[8];
    struct vs_column column = {
        .id = 1, .coding = coding, .data = (const uint8_t *)bytes, .bytes = size};
    return vs_column_values(&column, back, count);
}

Test(columns, malformed_values_are_refused)
{
    cr_assert_eq(values_of(VS_CODING_VARINT, "\x80", 1, 1), -EBADMSG, "cut varint");
    cr_assert_eq(values_of(VS_CODING_VARINT, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10, 1),
                 -EBADMSG, "more than 64 bits");
    cr_assert_eq(values_of(VS_CODING_VARINT, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10, 1), 0);
    cr_assert_eq(values_of(VS_CODING_RUNS, "\x00\x05", 2, 1), -EBADMSG, "empty run");
    cr_assert_eq(values_of(VS_CODING_RUNS, "\x03\x05", 2, 2), -EBADMSG, "run too long");
    cr_assert_eq(values_of(VS_CODING_RUNS, "\x02\x05\x01", 3, 2), -EBADMSG, "bytes left over");
    cr_assert_eq(values_of(9, "\x01", 1, 1), -ENOTSUP, "unknown coding");
    cr_assert_eq(values_of(VS_CODING_BYTES, "\x01", 1, 1), -ENOTSUP, "text is no number");
}

Test(columns, a_column_longer_than_its_payload_is_refused)
{
    const uint8_t payload[] = {1, VS_CODING_VARINT, 3, 1, 1};
    const uint8_t *at = payload;
    struct vs_column column;
    cr_assert_eq(vs_column_next(&at, payload + sizeof payload, &column), -EBADMSG);
}
