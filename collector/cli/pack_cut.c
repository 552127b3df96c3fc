/* SPDX-License-Identifier: Apache-2.0 */
/* Cutting a trace for an archive: see pack_cut.h. */
#include "pack_cut.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *look(void *self)
{
    struct pack_cut *cut = self;
    cut->error = vs_cut_open(cut->path, &cut->trace, &cut->why);
    return NULL;
}

void pack_cut_begin(struct pack_cut *cut, const char *path)
{
    cut->path = path;
    cut->begun = pthread_create(&cut->thread, NULL, look, cut) == 0;
}

static void wait_for_look(struct pack_cut *cut)
{
    if (cut->begun)
        pthread_join(cut->thread, NULL);
    cut->begun = false;
}

static int note_gaps(struct pack_cut *cut, const struct vs_cut_made *made)
{
    size_t count;
    const struct vs_cut_gap *gaps = vs_cut_gaps(cut->trace, &count);
    struct vs_cuts *cuts = &cut->cuts;
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

static int write_chosen(struct pack_cut *cut, int fd, uint64_t limit_bytes,
                        const struct pack_window *chosen, struct vs_cut_made *made)
{
    int error = vs_cut_keep(cut->trace, chosen->from_ns, chosen->to_ns);
    return error != 0 ? error
                      : vs_cut_write(cut->trace, fd, VS_CUT_LEAST_RADIUS, limit_bytes, made);
}

static void say_why(struct pack_cut *cut, int error)
{
    if (error == -EFBIG)
        cut->why.text[0] = 0;
    else if (cut->why.text[0] == 0)
        snprintf(cut->why.text, sizeof(cut->why.text), "%s", strerror(-error));
}

void pack_cut_make(struct pack_cut *cut, const char *path, int fd, uint64_t limit_bytes,
                   const struct pack_window *chosen)
{
    struct vs_cut_made made;
    wait_for_look(cut);
    cut->path = path;
    if (cut->trace == NULL && cut->error == 0)
        look(cut);
    int error = cut->error;
    if (error == 0)
        error = chosen != NULL ? write_chosen(cut, fd, limit_bytes, chosen, &made)
                               : vs_cut_fit(cut->trace, fd, limit_bytes, &made);
    if (error == 0)
        error = note_gaps(cut, &made);
    if (error == 0)
        cut->bytes = made.bytes;
    else
        say_why(cut, error);
}

void pack_cut_release(struct pack_cut *cut)
{
    wait_for_look(cut);
    vs_cut_close(cut->trace);
    free(cut->cuts.items);
    *cut = (struct pack_cut){0};
}
