/* SPDX-License-Identifier: Apache-2.0 */
/* The hash map and the ordered ranges against a plain array, over many random steps. */
#include <criterion/criterion.h>

#include "replay/map.h"
#include "replay/ranges.h"

VS_MAP_DEFINE(numbers, uint64_t);

enum { KEYS = 512, STEPS = 200000 };

static uint32_t random_next(uint32_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    *seed ^= *seed << 5;
    return *seed;
}

Test(map, agrees_with_an_array)
{
    struct numbers map = {0};
    uint64_t expected[KEYS] = {0};
    uint32_t seed = 12345;
    size_t live = 0;
    for (int step = 0; step < STEPS; step++) {
        uint64_t key = random_next(&seed) % KEYS;
        if (random_next(&seed) % 2) {
            uint64_t *value = numbers_put(&map, key << 9);
            cr_assert_not_null(value);
            cr_assert_eq(*value, expected[key]);
            live += expected[key] == 0;
            *value = expected[key] = (uint64_t)step + 1;
        } else {
            cr_assert_eq(numbers_remove(&map, key << 9), expected[key] != 0);
            live -= expected[key] != 0;
            expected[key] = 0;
        }
        cr_assert_eq(map.count, live);
    }
    for (uint64_t key = 0; key < KEYS; key++) {
        const uint64_t *value = numbers_get(&map, key << 9);
        cr_assert_eq(value == NULL ? 0 : *value, expected[key]);
    }
    numbers_release(&map);
}

Test(map, walks_every_value_once)
{
    struct numbers map = {0};
    for (uint64_t key = 0; key < 1000; key++)
        *numbers_put(&map, key * 2097152) = key;
    uint64_t sum = 0, key, count = 0;
    size_t index = 0;
    const uint64_t *value;
    while ((value = numbers_next(&map, &index, &key)) != NULL) {
        cr_assert_eq(key, *value * 2097152);
        sum += *value;
        count++;
    }
    cr_assert_eq(count, 1000);
    cr_assert_eq(sum, 999 * 1000 / 2);
    numbers_release(&map);
}

Test(map, takes_the_key_that_marks_empty_slots)
{
    struct numbers map = {0};
    cr_assert_null(numbers_get(&map, VS_MAP_MARK));
    *numbers_put(&map, VS_MAP_MARK) = 5;
    *numbers_put(&map, 0) = 6;
    cr_assert_eq(*numbers_get(&map, VS_MAP_MARK), 5);
    cr_assert_eq(*numbers_get(&map, 0), 6);
    cr_assert(numbers_remove(&map, VS_MAP_MARK));
    cr_assert_null(numbers_get(&map, VS_MAP_MARK));
    numbers_release(&map);
}

/* One range of size 8 per slot of 16. */
Test(ranges, agree_with_an_array)
{
    struct vs_ranges ranges = {0};
    struct vs_range *expected[KEYS] = {0};
    uint32_t seed = 99;
    for (int step = 0; step < STEPS; step++) {
        uint64_t slot = random_next(&seed) % KEYS, start = slot * 16;
        cr_assert_eq(vs_ranges_find(&ranges, start + 7), expected[slot]);
        cr_assert_null(vs_ranges_find(&ranges, start + 8));
        if (expected[slot] == NULL) {
            expected[slot] = vs_ranges_insert(&ranges, start, 8);
            cr_assert_not_null(expected[slot]);
        } else {
            vs_ranges_remove(&ranges, expected[slot]);
            expected[slot] = NULL;
        }
    }
    size_t count = 0;
    uint64_t from = 0;
    for (const struct vs_range *at; (at = vs_ranges_from(&ranges, from)) != NULL;
         from = at->start + 1, count++)
        cr_assert_eq(expected[at->start / 16], at);
    cr_assert_eq(count, ranges.count);
    vs_ranges_release(&ranges);
}

Test(ranges, find_what_overlaps)
{
    struct vs_ranges ranges = {0};
    const struct vs_range *low = vs_ranges_insert(&ranges, 100, 50);
    const struct vs_range *high = vs_ranges_insert(&ranges, 200, 50);
    cr_assert_eq(vs_ranges_overlap(&ranges, 140, 5), low);
    cr_assert_eq(vs_ranges_overlap(&ranges, 150, 51), high);
    cr_assert_null(vs_ranges_overlap(&ranges, 150, 50));
    cr_assert_eq(vs_ranges_overlap(&ranges, 0, UINT64_MAX), low);
    cr_assert_null(vs_ranges_overlap(&ranges, 100, 0));
    vs_ranges_release(&ranges);
}
