/* SPDX-License-Identifier: Apache-2.0 */
/* Words that the sections of the report for people share. */
#ifndef VS_CLI_REPORT_WORDS_H
#define VS_CLI_REPORT_WORDS_H

#include <string.h>

#include "page.h"
#include "replay/format_size.h"
#include "report.h"

static inline struct vs_size_text size_text(int64_t bytes)
{
    return vs_format_size(bytes);
}

static inline struct vs_size_text when(const struct vs_summary *summary, uint64_t time_ns)
{
    return vs_format_time(vs_summary_at(summary, time_ns));
}

static inline const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* "1 call", "2 calls". */
static inline const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* What the figures of the last moment are as of: the end (or the window's), or the cut. */
static inline const char *last_moment(const struct vs_summary *summary)
{
    return summary->windowed || summary->complete ? "end" : "cut";
}

static inline bool is_device_used(const struct vs_device_state *device)
{
    return device != NULL && (device->measured || device->context_seen || device->framework_seen ||
                              device->layers[VS_LAYER_DRIVER].peak_bytes != 0);
}

void report_heading(const struct page *page, const char *text);
/* A call by its name; the framework's own report is no call that people know. */
const char *report_call_title(const struct vs_summary *summary, uint16_t label);

#endif
