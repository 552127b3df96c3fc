/* SPDX-License-Identifier: Apache-2.0 */
/* Column codings: every coding gives back what it was given, and refuses what does not fit. */
#include <criterion/criterion.h>
#include <errno.h>
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

static void round_trip(const uint64_t *values, enum vs_coding expected)
{
    struct vs_bytes payload = {0};
    uint64_t back[COUNT];
    cr_assert_eq(vs_column_put(&payload, 300, values, COUNT), 0);
    struct vs_column column = only_column(&payload);
    cr_assert_eq(column.id, 300);
    cr_assert_eq(column.coding, expected);
    cr_assert_eq(vs_column_values(&column, back, COUNT), 0);
    cr_assert_arr_eq(values, back, sizeof back);
    vs_bytes_free(&payload);
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
