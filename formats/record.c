/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the event kinds, from the one table in record.h. */
#include "record.h"

#include <stddef.h>

struct kind_row {
    const char *name;
    char layer;
};

static const struct kind_row kinds[256] = {
#define VS_KIND_ROW(value, NAME, name, layer, meaning) [value] = {name, layer},
    VS_KIND_TABLE(VS_KIND_ROW)
#undef VS_KIND_ROW
};

const char *vs_kind_name(unsigned kind)
{
    if (kind >= 256 || kinds[kind].name == NULL)
        return "unknown";
    return kinds[kind].name;
}

char vs_kind_layer(unsigned kind)
{
    return kind < 256 ? kinds[kind].layer : 0;
}
