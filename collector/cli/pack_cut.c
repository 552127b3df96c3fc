/* SPDX-License-Identifier: Apache-2.0 */
/* Cutting a trace for an archive: see pack_cut.h. */
#include "pack_cut.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cut/cut.h"

static int note_gaps(const struct vs_cut *cut, const struct vs_cut_made *made, struct pack_cut *out)
{
    size_t count;
    const struct vs_cut_gap *gaps = vs_cut_gaps(cut, &count);
    struct vs_cuts *cuts = &out->cuts;
    cuts->gaps = made->gaps;
    cuts->events = made->events;
    cuts->count = count < VS_CUTS_KEPT ? count : VS_CUTS_KEPT;
    cuts->items = calloc(cuts->count + 1, sizeof(*cuts->items));
    if (cuts->items == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < cuts->count; i++)
        cuts->items[i] = (struct vs_gap){gaps[i].events, gaps[i].from_ns, gaps[i].to_ns};
    return 0;
}

bool pack_cut_make(const char *path, int fd, uint64_t limit_bytes, struct pack_cut *out)
{
    struct vs_cut *cut = NULL;
    struct vs_cut_made made;
    struct vs_error why = {{0}};
    *out = (struct pack_cut){0};
    int error = vs_cut_open(path, &cut, &why);
    if (error == 0)
        error = vs_cut_fit(cut, fd, limit_bytes, &made);
    if (error == 0)
        error = note_gaps(cut, &made, out);
    vs_cut_close(cut);
    if (error == 0)
        out->bytes = made.bytes;
    out->no_gain = error == -EFBIG || error == -EALREADY;
    if (error != 0 && !out->no_gain)
        fprintf(stderr, "vramscope: the trace cannot be cut: %s\n",
                why.text[0] != 0 ? why.text : strerror(-error));
    return error == 0 || out->no_gain;
}

void pack_cut_release(struct pack_cut *cut)
{
    free(cut->cuts.items);
    *cut = (struct pack_cut){0};
}
