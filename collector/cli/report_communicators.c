/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL's communicators: how many, who made them, and the device memory known to
 * be theirs. Those that one line made for as many ranks on one device are one row.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "report_sections.h"

enum { TOP_ROWS = 6 };

struct row {
    const struct vs_place *place;
    uint64_t ranks;
    int64_t bytes;
    size_t count;
    int8_t device;
    bool live;
};

static bool is_listed(const struct vs_communicator *communicator)
{
    return communicator->phase != VS_COMMUNICATOR_GONE || communicator->bytes != 0;
}

static int by_maker(const void *a, const void *b)
{
    const struct row *left = a, *right = b;
    if (left->place != right->place)
        return left->place < right->place ? -1 : 1;
    if (left->device != right->device)
        return left->device < right->device ? -1 : 1;
    if (left->ranks != right->ranks)
        return left->ranks < right->ranks ? -1 : 1;
    return (int)right->live - (int)left->live;
}

static int by_bytes(const void *a, const void *b)
{
    const struct row *left = a, *right = b;
    if (left->bytes != right->bytes)
        return left->bytes < right->bytes ? 1 : -1;
    return left->count != right->count ? (left->count < right->count ? 1 : -1) : by_maker(a, b);
}

/* Rows of one communicator each become rows of those that look alike; returns how many. */
static size_t merge(struct row *rows, size_t count)
{
    size_t kept = 0;
    qsort(rows, count, sizeof(*rows), by_maker);
    for (size_t i = 0; i < count; i++) {
        if (kept != 0 && by_maker(&rows[kept - 1], &rows[i]) == 0) {
            rows[kept - 1].bytes += rows[i].bytes;
            rows[kept - 1].count++;
        } else {
            rows[kept++] = rows[i];
        }
    }
    qsort(rows, kept, sizeof(*rows), by_bytes);
    return kept;
}

static size_t collect(const struct report *report, struct row *rows)
{
    const struct vs_state *state = report->summary->state;
    size_t count = 0;
    for (size_t i = 0; i < state->communicator_count; i++) {
        const struct vs_communicator *each = &state->communicators[i];
        if (is_listed(each))
            rows[count++] = (struct row){.place = vs_places_of(report->places, each->site),
                                         .ranks = each->ranks,
                                         .bytes = each->bytes,
                                         .count = 1,
                                         .device = each->device,
                                         .live = each->phase != VS_COMMUNICATOR_GONE};
    }
    return count == 0 ? 0 : merge(rows, count);
}

static void print_row(const struct page *page, const struct report *report, const struct row *row)
{
    char ranks[32] = "ranks not known", device[32] = "";
    if (row->ranks != 0)
        snprintf(ranks, sizeof(ranks), "%" PRIu64 " rank%s", row->ranks, plural(row->ranks));
    if (row->device >= 0)
        snprintf(device, sizeof(device), ", device %d", row->device);
    fprintf(page->out, "  %10s  %zu of %s%s%s", size_text(row->bytes).text, row->count, ranks,
            device, row->live ? "" : ", destroyed");
    struct page_text by = report_by(report, row->place == NULL ? 0 : row->place->site);
    fprintf(page->out, "%s%s\n", by.text[0] != 0 ? ", by " : "", by.text);
}

void report_print_communicators(const struct page *page, const struct report *report)
{
    const struct vs_summary *summary = report->summary;
    uint64_t created = summary->objects.kinds[VS_OBJECT_COMMUNICATOR].created;
    struct row *rows = calloc(summary->state->communicator_count + 1, sizeof(*rows));
    int64_t known, all;
    if (created == 0 || rows == NULL) {
        free(rows);
        return;
    }
    size_t count = collect(report, rows);
    vs_state_communicator_bytes(summary->state, &known, &all);
    report_heading(page, "NCCL communicators");
    fprintf(page->out, "  %s live of %s made; %s of device memory is known to be theirs\n",
            page_count(summary->objects.kinds[VS_OBJECT_COMMUNICATOR].live.count).text,
            page_count(created).text, size_text(known).text);
    if (all != known)
        fprintf(page->out, "  %s more of NCCL's: which of them it is for is not known\n",
                size_text(all - known).text);
    for (size_t i = 0; i < count && i < TOP_ROWS; i++)
        print_row(page, report, &rows[i]);
    if (count > TOP_ROWS)
        fprintf(page->out, "  ... and %zu more (--json has all)\n", count - TOP_ROWS);
    free(rows);
}
