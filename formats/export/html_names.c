/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table with open places over an array: see html_names.h. */
#include "html_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "replay/grow.h"

enum { FIRST_SLOTS = 1024 };

static uint64_t hash_of(const unsigned char *data, size_t bytes)
{
    uint64_t hash = 0xcbf29ce484222325ULL; /* FNV-1a */
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ data[i]) * 0x100000001b3ULL;
    return hash ^ hash >> 29;
}

static uint32_t *slot_of(const struct vs_html_names *names, const void *data, size_t bytes)
{
    size_t at = hash_of(data, bytes) & (names->slots - 1);
    for (; names->index[at] != 0; at = (at + 1) & (names->slots - 1)) {
        const struct vs_html_name *name = &names->items[names->index[at] - 1];
        if (name->bytes == bytes && memcmp(name->data, data, bytes) == 0)
            break;
    }
    return &names->index[at];
}

static int grow_index(struct vs_html_names *names)
{
    size_t slots = names->slots == 0 ? FIRST_SLOTS : names->slots * 2;
    uint32_t *index = calloc(slots, sizeof(*index));
    if (index == NULL)
        return -ENOMEM;
    free(names->index);
    names->index = index;
    names->slots = slots;
    for (size_t i = 0; i < names->count; i++)
        *slot_of(names, names->items[i].data, names->items[i].bytes) = (uint32_t)(i + 1);
    return 0;
}

long vs_html_name(struct vs_html_names *names, const void *data, size_t bytes)
{
    if (names->count * 2 >= names->slots && grow_index(names) != 0)
        return -ENOMEM;
    uint32_t *slot = slot_of(names, data, bytes);
    if (*slot != 0)
        return (long)*slot - 1;
    const char *copy = vs_arena_text(&names->arena, data, bytes);
    if (copy == NULL ||
        !vs_grow(&names->items, &names->room, names->count + 1, sizeof(*names->items)))
        return -ENOMEM;
    names->items[names->count++] = (struct vs_html_name){copy, bytes};
    *slot = (uint32_t)names->count;
    return (long)names->count - 1;
}

void vs_html_names_release(struct vs_html_names *names)
{
    free(names->items);
    free(names->index);
    vs_arena_free(&names->arena);
    *names = (struct vs_html_names){0};
}
