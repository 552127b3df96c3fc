/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the HTML export share: the analysed trace and the page's own texts. */
#ifndef VS_EXPORT_HTML_PAGE_H
#define VS_EXPORT_HTML_PAGE_H

#include "export.h"
#include "html_curve.h"
#include "html_sets.h"
#include "replay/growth.h"
#include "replay/places.h"

enum { VS_HTML_OOMS = 40, VS_HTML_OOM_SETS = 8, VS_HTML_GROWN = 12, VS_HTML_PHASES = 400 };

/* When a highest value was reached. */
struct vs_html_peak {
    uint64_t mark; /* what the state said when it was noted last */
    uint64_t sequence, time_ns;
};

/* What the first reading gathers of one device. */
struct vs_html_device {
    struct vs_html_curve curve;
    struct vs_html_row before; /* the last row before the window */
    struct vs_html_row asked;  /* the last one at or before --at TIME */
    struct vs_html_peak live[VS_LAYERS], reserved, used;
};

struct vs_html {
    struct vs_export *export;
    struct vs_html_device *devices[VS_DEVICE_SLOTS]; /* index = device + 128 */
    size_t device_count;
    size_t stretches_each;
    int error;
    struct vs_summary *summary;
    struct vs_frames *frames;
    struct vs_places places;
    struct vs_grown_list grown;
    struct vs_html_sets sets;
};

/* html_data.c: the JSON text of all of it, free of "<", for a script element. 0 or -errno. */
int vs_html_write_data(const struct vs_html *html);

/* Made by embed.cmake: the page before and behind the data. Empty without the library. */
extern const unsigned char vs_html_head[], vs_html_tail[];
extern const size_t vs_html_head_bytes, vs_html_tail_bytes;

#endif
