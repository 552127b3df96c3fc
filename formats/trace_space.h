/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where chunks go in a trace that grows: into room that merged chunks have left,
 * else behind the last one. Whatever the moment at which the writer dies, what
 * had been put is whole, and what is released is only what another chunk holds
 * as well: a chunk's header, the last thing written, makes it exist and in the
 * same 64 bytes ends what stood there; every room is a chunk that says skip me.
 */
#ifndef VS_FORMATS_TRACE_SPACE_H
#define VS_FORMATS_TRACE_SPACE_H

#include "trace_chunk.h"

#define VS_SPACE_ROOMS 256U
#define VS_SPACE_MOVABLE 64U

/* Bytes of the file, both multiples of VS_TRACE_ALIGN. `bytes` 0: nowhere. */
struct vs_extent {
    uint64_t offset, bytes;
};

struct vs_space {
    int fd;
    uint32_t file_tag;
    uint64_t end;                           /* of the last chunk or room */
    uint64_t chunks;                        /* numbers given away */
    struct vs_extent rooms[VS_SPACE_ROOMS]; /* increasing, none next to another */
    size_t room_count;
    struct vs_extent movable[VS_SPACE_MOVABLE]; /* the last chunks that may move, increasing */
    size_t movable_count;
};

/* All of the bytes, whatever interrupts. 0 or the write's error. */
int vs_space_write(int fd, const uint8_t *data, size_t bytes, uint64_t offset);

/* `end`: behind the file header. */
void vs_space_init(struct vs_space *space, int fd, uint32_t file_tag, uint64_t end);

/*
 * Writes a chunk: fills the header's number and tag, and *out with its place.
 * `last`: behind everything else. 0 or the write's error; then the file is as
 * before but for bytes that belong to no chunk.
 */
int vs_space_put(struct vs_space *space, struct vs_chunk_header *header, const uint8_t *stored,
                 bool last, struct vs_extent *out);

/* Makes chunks room that others may take. Some may stay as they are. 0 or a write's error. */
int vs_space_release(struct vs_space *space, const struct vs_extent *extents, size_t count);

/*
 * A chunk that may get a higher number: of events, or the last of its kind.
 * Those of events are known by themselves.
 */
void vs_space_may_move(struct vs_space *space, const struct vs_extent *extent);

/*
 * At the end of writing: moves the last chunks that may move into room before them
 * and cuts what is free then. 0 or an error, -ENOMEM among them.
 */
int vs_space_settle(struct vs_space *space);

#endif
