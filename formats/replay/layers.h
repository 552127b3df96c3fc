/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the fold and the report know of each framework's caching layer: one row of
 * layers.c. Its blocks come as FW_ALLOC and FW_FREE whatever it is called; its segments
 * are the driver memory that a row says is its own, or that blocks turn out to lie in.
 */
#ifndef VS_REPLAY_LAYERS_H
#define VS_REPLAY_LAYERS_H

#include <stdbool.h>

struct vs_caching_layer {
    const char *title;       /* for people */
    const char *give_back;   /* what a program calls to give free segments back; NULL not known */
    const char *library;     /* what the names of its libraries begin with */
    const char *block_calls; /* what the names begin with under which it tells of blocks */
    /* Driver memory that its library takes is segments; else that taken beneath `segment_call`. */
    bool library_takes_segments;
    const char *segment_call;
    /* What takes pinned host memory for it, in blocks of powers of two that it keeps; NULL none. */
    const char *host_library;
    /* It names no device and serves the host, too: the device is the one a block lies in. */
    bool by_place;
};

/* The layer of a library's owner name; NULL for any other. */
const struct vs_caching_layer *vs_layer_of_library(const char *name);
/* True for the owner name of a library that keeps pinned memory for a layer. */
bool vs_layer_keeps_host_memory(const char *name);
/* The layer that tells of blocks under this name, or takes segments beneath it; NULL for others. */
const struct vs_caching_layer *vs_layer_of_call(const char *call);
/* True for the name of a call beneath which a layer takes segments. */
bool vs_layer_takes_segments(const char *call);

#endif
