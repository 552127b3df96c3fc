/* SPDX-License-Identifier: Apache-2.0 */
/* The ids seen so far, one bit each, in pages made when they are needed. */
#ifndef VS_EXPORT_SEEN_H
#define VS_EXPORT_SEEN_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#define VS_SEEN_IDS 65536U

struct vs_seen {
    uint64_t *pages[UINT32_MAX / VS_SEEN_IDS + 1];
};

/* 1 when the id had not been seen, 0 when it had, -ENOMEM. */
static inline int vs_seen_add(struct vs_seen *seen, uint32_t id)
{
    uint64_t **page = &seen->pages[id / VS_SEEN_IDS], bit = 1ULL << id % 64;
    if (*page == NULL)
        *page = calloc(VS_SEEN_IDS / 64, sizeof(**page));
    if (*page == NULL)
        return -ENOMEM;
    uint64_t *word = &(*page)[id % VS_SEEN_IDS / 64];
    int fresh = (*word & bit) == 0;
    *word |= bit;
    return fresh;
}

static inline void vs_seen_release(struct vs_seen *seen)
{
    for (size_t i = 0; i < sizeof(seen->pages) / sizeof(seen->pages[0]); i++)
        free(seen->pages[i]);
}

#endif
