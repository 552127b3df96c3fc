/* SPDX-License-Identifier: Apache-2.0 */
/* The columns of a device's curves: see curve_row.h. */
#include "curve_row.h"

const char *const vs_curve_columns[VS_CURVE_COLUMNS] = {
    "allocated_bytes",
    "reserved_bytes",
    "device_bytes",
    "live_bytes",
    "backed_bytes",
    "unbacked_bytes",
    "cached_bytes",
    "direct_bytes",
    "implicit_bytes",
    "other_process_bytes",
    "unexplained_bytes",
    "managed_bytes",
    "host_pinned_bytes",
    "host_rss_bytes",
    "pending_bytes",
    "private_pool_bytes",
    "free_in_segments_bytes",
    "host_shared_bytes",
    "largest_free_block_bytes",
};

/* The largest free block takes a walk over all blocks, which is made once in so many rows that
   a row costs a look at this many blocks. */
enum { BLOCKS_PER_ROW = 16, DEVICE_OFFSET = 128 };

static void set(struct vs_curve_row *row, size_t column, int64_t value, bool known)
{
    row->value[column] = value;
    row->known[column] = known;
}

static void fill_row(const struct vs_device_state *device, const struct vs_bands *bands,
                     struct vs_curve_row *row)
{
    int64_t implicit = 0;
    for (int i = 0; i < VS_IMPLICITS; i++)
        implicit += bands->implicit[i];
    bool measured = bands->device_known;
    size_t column = 0;
    set(row, column++, bands->allocated, true);
    set(row, column++, bands->reserved, true);
    set(row, column++, bands->device, measured);
    set(row, column++, device->layers[vs_device_top_layer(device)].live_bytes, true);
    set(row, column++, bands->backed, true);
    set(row, column++, bands->unbacked, true);
    set(row, column++, bands->cached, true);
    set(row, column++, bands->direct, true);
    set(row, column++, implicit, measured);
    set(row, column++, bands->other_process, measured);
    set(row, column++, bands->unexplained, measured);
    set(row, column++, bands->managed, true);
    set(row, column++, bands->host_pinned, true);
    set(row, column++, bands->host_rss, bands->host_rss >= 0);
    set(row, column++, bands->pending, bands->pending_known);
    set(row, column++, bands->private_pool, bands->private_pool_known);
    set(row, column++, bands->cached - bands->pending, bands->pending_known);
    set(row, column++, bands->host_shared, bands->host_shared >= 0);
    set(row, column++, 0, false);
}

static void fill_largest(struct vs_curve_walks *walks, const struct vs_state *state,
                         const struct vs_device_state *device, struct vs_curve_row *row)
{
    size_t place = (size_t)(device->device + DEVICE_OFFSET);
    struct vs_free_space space;
    walks->rows_since[place]++;
    if (!device->framework_seen ||
        (walks->walked[place] && walks->rows_since[place] < state->blocks.count / BLOCKS_PER_ROW))
        return;
    walks->walked[place] = true;
    walks->rows_since[place] = 0;
    if (vs_state_free_space(state, device, &space) == 0)
        set(row, VS_CURVE_COLUMNS - 1, (int64_t)space.largest_bytes, space.known);
}

void vs_curve_row(struct vs_curve_walks *walks, const struct vs_state *state,
                  const struct vs_device_state *device, const struct vs_bands *bands,
                  struct vs_curve_row *row)
{
    *row = (struct vs_curve_row){0};
    if (bands == NULL)
        return;
    fill_row(device, bands, row);
    fill_largest(walks, state, device, row);
}
