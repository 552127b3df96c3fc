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

void vs_curve_row(struct vs_free_blocks *free_blocks, const struct vs_state *state,
                  const struct vs_device_state *device, const struct vs_bands *bands,
                  struct vs_curve_row *row)
{
    uint64_t largest = 0;
    *row = (struct vs_curve_row){0};
    if (bands == NULL)
        return;
    fill_row(device, bands, row);
    if (vs_free_blocks_largest(free_blocks, state, device, &largest))
        set(row, VS_CURVE_COLUMNS - 1, (int64_t)largest, true);
}
