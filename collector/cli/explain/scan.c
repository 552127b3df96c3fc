/* SPDX-License-Identifier: Apache-2.0 */
/* Words and sizes out of text. */
#include "scan.h"

#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

void cursor_blank(struct cursor *cursor)
{
    while (cursor->at < cursor->end && (*cursor->at == ' ' || *cursor->at == '\t'))
        cursor->at++;
}

bool cursor_take(struct cursor *cursor, const char *word)
{
    size_t length = strlen(word);
    if ((size_t)(cursor->end - cursor->at) < length || memcmp(cursor->at, word, length) != 0)
        return false;
    cursor->at += length;
    return true;
}

bool cursor_find(struct cursor *cursor, const char *word, size_t reach)
{
    size_t room = (size_t)(cursor->end - cursor->at);
    if (room == 0)
        return false;
    const char *found = memmem(cursor->at, room < reach ? room : reach, word, strlen(word));
    if (found == NULL)
        return false;
    cursor->at = found + strlen(word);
    return true;
}

bool cursor_has(struct cursor cursor, const char *word, size_t reach)
{
    return cursor_find(&cursor, word, reach);
}

/* "25,600,000": a comma before exactly three digits; before others it is a decimal's, or a list's.
 */
static bool groups_digits(const char *at, const char *end)
{
    if (*at != ',' || end - at < 4 || (end - at > 4 && is_digit(at[4])))
        return false;
    return is_digit(at[1]) && is_digit(at[2]) && is_digit(at[3]);
}

bool cursor_count(struct cursor *cursor, uint64_t *value)
{
    const char *at = cursor->at;
    uint64_t sum = 0;
    if (at == cursor->end || !is_digit(*at))
        return false;
    for (; at < cursor->end; at++) {
        if (groups_digits(at, cursor->end))
            continue;
        if (!is_digit(*at))
            break;
        unsigned digit = (unsigned)(*at - '0');
        sum = sum > (UINT64_MAX - digit) / 10 ? UINT64_MAX : sum * 10 + digit;
    }
    cursor->at = at;
    *value = sum;
    return true;
}

/* The longest names first: "KiB" is not "K". */
static const struct {
    const char *name;
    unsigned shift;
} units[] = {
    {"bytes", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}, {"PiB", 50},
    {"EiB", 60},  {"KB", 10},  {"kB", 10},  {"MB", 20},  {"GB", 30},  {"TB", 40},
    {"B", 0},     {"K", 10},   {"M", 20},   {"G", 30},   {"T", 40},
};

enum { NO_UNIT = 99 };

/* The unit that is next as a power of two; `otherwise` where there is none. */
static unsigned take_unit(struct cursor *cursor, unsigned otherwise)
{
    struct cursor ahead = *cursor;
    cursor_blank(&ahead);
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (cursor_take(&ahead, units[i].name)) {
            *cursor = ahead;
            return units[i].shift;
        }
    return otherwise;
}

static int64_t scale(double value, unsigned shift)
{
    double bytes = value * (double)((uint64_t)1 << shift);
    return bytes >= (double)AMOUNT_ABSURD ? AMOUNT_ABSURD : (int64_t)bytes;
}

/* ".65", or ",65" where a unit follows: programs under some locales. 1 where there is none. */
static double take_fraction(struct cursor *cursor, double *fraction)
{
    struct cursor ahead = *cursor;
    bool comma = cursor_take(&ahead, ",");
    double place = 1;
    *fraction = 0;
    if (!comma && !cursor_take(&ahead, "."))
        return 1;
    for (; ahead.at < ahead.end && is_digit(*ahead.at); ahead.at++) {
        place /= 10;
        *fraction += place * (*ahead.at - '0');
    }
    struct cursor unit = ahead;
    if (place == 1 || (comma && take_unit(&unit, NO_UNIT) == NO_UNIT)) {
        *fraction = 0;
        return 1;
    }
    *cursor = ahead;
    return place;
}

static struct amount take_amount(struct cursor *cursor, unsigned otherwise)
{
    struct amount amount = {0};
    struct cursor ahead = *cursor;
    uint64_t whole;
    double fraction;
    cursor_blank(&ahead);
    if (!cursor_count(&ahead, &whole))
        return amount;
    double place = take_fraction(&ahead, &fraction);
    unsigned shift = take_unit(&ahead, NO_UNIT);
    if (shift == NO_UNIT && place < 1 && otherwise == 0)
        return amount; /* a part of a byte: whatever it is, not a size */
    shift = shift == NO_UNIT ? otherwise : shift;
    *cursor = ahead;
    amount.bytes = scale((double)whole + fraction, shift);
    /* Decimals are rounded, whole units cut or rounded: up to half a digit, up to one unit. */
    amount.rounding = shift == 0 ? 0 : place < 1 ? scale(place / 2, shift) + 1 : scale(1, shift);
    amount.known = amount.bytes < AMOUNT_ABSURD;
    return amount;
}

struct amount cursor_amount(struct cursor *cursor)
{
    return take_amount(cursor, 0);
}

struct amount cursor_amount_in(struct cursor *cursor, const char *unit)
{
    struct cursor name = cursor_of(unit, strlen(unit));
    return take_amount(cursor, take_unit(&name, 0));
}

struct amount amount_after(struct cursor cursor, const char *word, size_t reach)
{
    return cursor_find(&cursor, word, reach) ? cursor_amount(&cursor) : (struct amount){0};
}

struct amount amount_before(struct cursor cursor, const char *word, size_t reach)
{
    struct cursor behind = cursor;
    if (!cursor_find(&behind, word, reach))
        return (struct amount){0};
    const char *end = behind.at - strlen(word), *start = end;
    while (start > cursor.at && start[-1] != ';' && start[-1] != '(' && end - start < 32)
        start--;
    /* The last number of that piece, with its unit, must end exactly there. */
    for (; start < end; start++) {
        struct cursor piece = {start, end};
        if (!is_digit(*start) || (start > cursor.at && (is_digit(start[-1]) || start[-1] == '.')))
            continue;
        struct amount amount = cursor_amount(&piece);
        cursor_blank(&piece);
        if (piece.at == end)
            return amount;
    }
    return (struct amount){0};
}
