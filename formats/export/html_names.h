/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers for things that a page names again and again: texts, frames. */
#ifndef VS_EXPORT_HTML_NAMES_H
#define VS_EXPORT_HTML_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "arena.h"

struct vs_html_name {
    const void *data;
    size_t bytes;
};

/* Zero is the empty one. */
struct vs_html_names {
    struct vs_html_name *items;
    size_t count, room;
    uint32_t *index; /* number + 1, 0 free */
    size_t slots;    /* a power of two */
    struct vs_arena arena;
};

/* The number of these bytes, which are copied when new; -ENOMEM. */
long vs_html_name(struct vs_html_names *names, const void *data, size_t bytes);
void vs_html_names_release(struct vs_html_names *names);

#endif
