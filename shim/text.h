/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Comparing names without libc: a sanitizer's runtime looks its own functions
 * up through our dlsym while its strcmp is still a null pointer.
 */
#ifndef VS_SHIM_TEXT_H
#define VS_SHIM_TEXT_H

#include <stdbool.h>

/* As strcmp. */
static inline int text_compare(const char *a, const char *b)
{
    while (*a != '\0' && *a == *b) {
        a++;
        b++;
    }
    return (int)(unsigned char)*a - (int)(unsigned char)*b;
}

static inline bool text_begins_with(const char *text, const char *prefix)
{
    while (*prefix != '\0' && *text == *prefix) {
        text++;
        prefix++;
    }
    return *prefix == '\0';
}

#endif
