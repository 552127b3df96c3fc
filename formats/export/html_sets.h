/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second reading of a trace for a page: what was live, and how the segments
 * were filled, at instants chosen after the first. Every set is exact: it is the
 * state right after one event, or at the end.
 */
#ifndef VS_EXPORT_HTML_SETS_H
#define VS_EXPORT_HTML_SETS_H

#include "export.h"
#include "replay/fragmentation.h"
#include "replay/segments.h"

/* Why an instant was chosen; bits. */
enum vs_html_reason {
    VS_HTML_SAMPLED = 1 << 0, /* a high or a low of its part of the curve */
    VS_HTML_PEAK_LIVE = 1 << 1,
    VS_HTML_PEAK_RESERVED = 1 << 2,
    VS_HTML_PEAK_DEVICE = 1 << 3,
    VS_HTML_AT_OOM = 1 << 4,
    VS_HTML_ASKED = 1 << 5, /* --at TIME */
    VS_HTML_AT_END = 1 << 6
};
/* Those whose set is carried at length and with the segments. */
enum {
    VS_HTML_KEY = VS_HTML_PEAK_LIVE | VS_HTML_PEAK_RESERVED | VS_HTML_PEAK_DEVICE | VS_HTML_AT_OOM |
                  VS_HTML_ASKED | VS_HTML_AT_END
};

enum { VS_HTML_SET_SITES = 250, VS_HTML_KEY_SITES = 2000 };

/* What was live of one site. */
struct vs_html_live {
    uint32_t site; /* in the second reading's state */
    int64_t bytes, count;
};

/* One or, where small ones are drawn together, several blocks side by side. */
struct vs_html_block {
    uint64_t address, span, bytes;
    uint32_t site; /* of the largest */
    uint32_t count;
};

struct vs_html_set {
    uint64_t sequence; /* of the event after which it was so; UINT64_MAX: the end */
    uint64_t time_ns;  /* since the trace's beginning */
    int8_t device;
    uint8_t reasons;
    bool taken;
    struct vs_html_live *live; /* most bytes first */
    size_t live_count;
    int64_t total_bytes, total_count; /* of all sites, those not in `live` included */
    size_t total_sites;
    /* Key instants only. */
    bool layout_known;
    struct vs_segment *segments;
    size_t segment_count;
    struct vs_html_block *blocks; /* by address; first_block and block_count are of these */
    size_t block_count;
    uint64_t joined_below; /* smaller blocks side by side are drawn as one; 0: none */
    struct vs_fragmentation fragmentation;
};

struct vs_html_sets {
    struct vs_html_set *items; /* by sequence, once they are taken */
    size_t count, room;
    struct vs_state *state; /* of the second reading, which ended at the window's end */
    size_t next;            /* to be taken */
    size_t blocks_each;     /* that one set may carry */
    struct vs_sites sites;
    const struct vs_export *export;
};

/* Wants the set of a device after an event; joins it with one that is there already. */
int vs_html_sets_want(struct vs_html_sets *sets, int8_t device, uint64_t sequence, uint64_t time_ns,
                      unsigned reason);
/* Reads the trace up to the end of the window and takes them. 0 or a negative errno value. */
int vs_html_sets_take(struct vs_html_sets *sets, struct vs_export *export);
void vs_html_sets_release(struct vs_html_sets *sets);

#endif
