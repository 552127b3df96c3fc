/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch's memory_summary() table and memory_stats() dictionary. The table cuts its
 * figures to whole units; "KB", "MB" of older versions are powers of 1024 too.
 */
#include "paste.h"

static const struct {
    const char *title, *now, *peak;
} rows[] = {
    [ROW_ALLOCATED] = {"Allocated memory", "allocated_bytes.all.current",
                       "allocated_bytes.all.peak"},
    [ROW_ACTIVE] = {"Active memory", "active_bytes.all.current", "active_bytes.all.peak"},
    [ROW_RESERVED] = {"GPU reserved memory", "reserved_bytes.all.current",
                      "reserved_bytes.all.peak"},
    [ROW_NON_RELEASABLE] = {"Non-releasable memory", "inactive_split_bytes.all.current",
                            "inactive_split_bytes.all.peak"},
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

/* The table of the last device that failed stays; else the last table. */
static void begin_table(struct paste *paste, struct cursor line)
{
    struct summary_table *table = &paste->summary;
    uint64_t device;
    *table = (struct summary_table){.device = -1};
    if (cursor_find(&line, "device ID", PASTE_LINE)) {
        cursor_blank(&line);
        if (cursor_count(&line, &device) && device < 1024)
            table->device = (int)device;
    }
}

static void count_after(struct cursor line, const char *word, bool *known, uint64_t *value)
{
    if (!cursor_find(&line, word, PASTE_LINE))
        return;
    while (line.at < line.end && (*line.at == '\'' || *line.at == '"' || *line.at == ':' ||
                                  *line.at == ' ' || *line.at == ','))
        line.at++;
    *known |= cursor_count(&line, value);
}

static void table_row(struct summary_table *table, int row, struct cursor line)
{
    if (!cursor_find(&line, rows[row].title, PASTE_LINE))
        return;
    cursor_blank(&line);
    if (!cursor_take(&line, "|"))
        return;
    struct amount now = cursor_amount(&line);
    struct amount peak = amount_after(line, "|", 32);
    if (!now.known)
        return;
    table->seen = true;
    table->now[row] = now;
    table->peak[row] = peak;
}

static void entry(struct summary_table *table, const char *key, struct amount *amount,
                  struct cursor line)
{
    bool known = false;
    uint64_t value = 0;
    count_after(line, key, &known, &value);
    if (!known || value >= (uint64_t)AMOUNT_ABSURD)
        return;
    *amount = (struct amount){(int64_t)value, 0, true};
    table->seen = true;
}

void summary_line(struct paste *paste, struct cursor line)
{
    struct summary_table *table = &paste->summary;
    if (cursor_has(line, "memory summary, device ID", PASTE_LINE))
        begin_table(paste, line);
    count_after(line, "CUDA OOMs:", &table->ooms_known, &table->ooms);
    count_after(line, "cudaMalloc retries:", &table->retries_known, &table->retries);
    count_after(line, "num_ooms", &table->ooms_known, &table->ooms);
    count_after(line, "num_alloc_retries", &table->retries_known, &table->retries);
    for (int row = 0; row < ROWS; row++) {
        table_row(table, row, line);
        entry(table, rows[row].now, &table->now[row], line);
        entry(table, rows[row].peak, &table->peak[row], line);
    }
}
