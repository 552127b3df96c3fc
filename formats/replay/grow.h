/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that grow. */
#ifndef VS_REPLAY_GROW_H
#define VS_REPLAY_GROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/*
 * Room for at least `needed` items of `item_bytes` in `*items`; what is added is
 * zero. False without memory, the array unchanged.
 */
static inline bool vs_grow(void *items, size_t *room, size_t needed, size_t item_bytes)
{
    if (needed <= *room)
        return true;
    size_t larger = *room < 16 ? 16 : *room;
    while (larger < needed)
        larger *= 2;
    void *old;
    memcpy(&old, items, sizeof(old));
    void *grown = larger > SIZE_MAX / item_bytes ? NULL : realloc(old, larger * item_bytes);
    if (grown == NULL)
        return false;
    memset((char *)grown + *room * item_bytes, 0, (larger - *room) * item_bytes);
    memcpy(items, &grown, sizeof(grown));
    *room = larger;
    return true;
}

#endif
