/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events as the columns of an EVENTS or KEYFRAME payload, and back: the table of
 * column ids is docs/format.md §6.
 */
#ifndef VS_FORMATS_TRACE_EVENTS_H
#define VS_FORMATS_TRACE_EVENTS_H

#include "record.h"
#include "trace_columns.h"

/* Where a part of a key frame stands in the whole. */
struct vs_keyframe_part {
    uint64_t ordinal; /* of this part's first event among all events of the key frame */
    uint64_t total;   /* events of the whole key frame */
};

/* Appends the columns of `count` events to `out`. 0 or -ENOMEM. */
int vs_events_encode(const struct vs_sequenced_event *events, size_t count, struct vs_bytes *out);
int vs_keyframe_encode(const struct vs_sequenced_event *events, size_t count,
                       const struct vs_keyframe_part *part, struct vs_bytes *out);

/*
 * Fills exactly `count` events. `scratch` holds `count` numbers. -EBADMSG when a
 * column does not fit, a value is larger than its field, or sequences do not
 * increase; -ENOTSUP for a coding this build does not know.
 */
int vs_events_decode(const uint8_t *payload, size_t bytes, struct vs_sequenced_event *events,
                     size_t count, uint64_t *scratch);
int vs_keyframe_decode(const uint8_t *payload, size_t bytes, struct vs_sequenced_event *events,
                       size_t count, uint64_t *scratch, struct vs_keyframe_part *part);

#endif
