/* SPDX-License-Identifier: Apache-2.0 */
/* Small chunks into larger ones: see trace_shelf.h. */
#include "trace_shelf.h"

#define MERGED_AT_ONCE 8U

/* The new chunk is whole in the file before the ones that it replaces are given up. */
static int merge_from(struct vs_shelf *shelf, struct vs_space *space, size_t from,
                      vs_shelf_write *write, void *context)
{
    struct vs_extent merged, replaced[VS_SHELF_MOST];
    size_t first = shelf->items[from].first, count = shelf->count - from;
    int error = write(context, first, shelf->kept - first, &merged);
    if (error != 0)
        return error;
    for (size_t i = 0; i < count; i++)
        replaced[i] = shelf->items[from + i].place;
    shelf->items[from].size++;
    shelf->items[from].place = merged;
    shelf->count = from + 1;
    return vs_space_release(space, replaced, count);
}

/* Where the last items of one size begin. */
static size_t run_start(const struct vs_shelf *shelf)
{
    size_t at = shelf->count;
    while (at > 0 && shelf->items[at - 1].size == shelf->items[shelf->count - 1].size)
        at--;
    return at;
}

static int merge_equals(struct vs_shelf *shelf, struct vs_space *space, vs_shelf_write *write,
                        void *context)
{
    int error = 0;
    while (error == 0 && shelf->count > 0) {
        size_t from = run_start(shelf);
        if (shelf->count - from < MERGED_AT_ONCE)
            break;
        error = merge_from(shelf, space, from, write, context);
    }
    return error;
}

int vs_shelf_flush(struct vs_shelf *shelf, struct vs_space *space, size_t total,
                   vs_shelf_write *write, void *context)
{
    struct vs_extent place;
    if (total == shelf->kept)
        return 0;
    int error = write(context, shelf->kept, total - shelf->kept, &place);
    if (error != 0)
        return error;
    shelf->items[shelf->count++] = (struct vs_shelf_item){.first = shelf->kept, .place = place};
    shelf->kept = total;
    error = merge_equals(shelf, space, write, context);
    if (error == 0 && shelf->count == VS_SHELF_MOST)
        error = merge_from(shelf, space, 0, write, context);
    return error;
}

int vs_shelf_seal(struct vs_shelf *shelf, struct vs_space *space, size_t total,
                  vs_shelf_write *write, void *context)
{
    struct vs_extent place;
    int error = 0;
    if (total > 0 && shelf->count == 0) {
        error = write(context, 0, total, &place);
    } else if (shelf->count > 1 || total > shelf->kept) {
        shelf->kept = total;
        error = merge_from(shelf, space, 0, write, context);
    }
    shelf->count = shelf->kept = 0;
    return error;
}
