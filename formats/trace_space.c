/* SPDX-License-Identifier: Apache-2.0 */
/* Placing chunks and using room again: see trace_space.h. */
#include "trace_space.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A ROOM chunk says its size in 32 bits. */
#define ROOM_MAX_BYTES (1ULL << 30)
/* What settling may copy: it happens while a program waits for its end. */
#define SETTLE_MOST_BYTES (4U << 20)

void vs_space_init(struct vs_space *space, int fd, uint32_t file_tag, uint64_t end)
{
    memset(space, 0, sizeof *space);
    space->fd = fd;
    space->file_tag = file_tag;
    space->end = end;
}

int vs_space_write(int fd, const uint8_t *data, size_t bytes, uint64_t offset)
{
    while (bytes > 0) {
        ssize_t done = pwrite(fd, data, bytes, (off_t)offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return done < 0 ? -errno : -EIO;
        data += done;
        bytes -= (size_t)done;
        offset += (uint64_t)done;
    }
    return 0;
}

static int read_at(int fd, uint8_t *data, size_t bytes, uint64_t offset)
{
    while (bytes > 0) {
        ssize_t done = pread(fd, data, bytes, (off_t)offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return done < 0 ? -errno : -EIO;
        data += done;
        bytes -= (size_t)done;
        offset += (uint64_t)done;
    }
    return 0;
}

static uint64_t end_of(const struct vs_extent *extent)
{
    return extent->offset + extent->bytes;
}

/* ---- rooms -------------------------------------------------------------------------- */

static int write_room(struct vs_space *space, const struct vs_extent *room)
{
    uint8_t encoded[VS_CHUNK_HEADER_BYTES];
    struct vs_chunk_header header = {.type = VS_CHUNK_ROOM,
                                     .stored_bytes =
                                         (uint32_t)(room->bytes - VS_CHUNK_HEADER_BYTES),
                                     .number = space->chunks++,
                                     .file_tag = space->file_tag};
    vs_chunk_header_encode(&header, encoded);
    return vs_space_write(space->fd, encoded, sizeof encoded, room->offset);
}

static void drop_room(struct vs_space *space, size_t at)
{
    memmove(&space->rooms[at], &space->rooms[at + 1],
            (space->room_count - at - 1) * sizeof space->rooms[0]);
    space->room_count--;
}

/* The first room behind `offset`. */
static size_t room_after(const struct vs_space *space, uint64_t offset)
{
    size_t at = 0;
    while (at < space->room_count && space->rooms[at].offset < offset)
        at++;
    return at;
}

/* Makes rooms[at] and the one behind it one, if they touch. */
static void join(struct vs_space *space, size_t at)
{
    struct vs_extent *room = &space->rooms[at];
    if (at + 1 == space->room_count || end_of(room) != room[1].offset ||
        room->bytes + room[1].bytes > ROOM_MAX_BYTES)
        return;
    room->bytes += room[1].bytes;
    drop_room(space, at + 1);
}

/* False when there is no place in the list. */
static bool add_room(struct vs_space *space, const struct vs_extent *extent)
{
    size_t at = room_after(space, extent->offset);
    if (extent->bytes == 0 || space->room_count == VS_SPACE_ROOMS)
        return false;
    memmove(&space->rooms[at + 1], &space->rooms[at],
            (space->room_count - at) * sizeof space->rooms[0]);
    space->rooms[at] = *extent;
    space->room_count++;
    join(space, at);
    if (at > 0)
        join(space, at - 1);
    return true;
}

static size_t find_room(const struct vs_space *space, uint64_t bytes)
{
    size_t at = 0;
    while (at < space->room_count && space->rooms[at].bytes < bytes)
        at++;
    return at;
}

/* ---- the last chunks that may move ---------------------------------------------------- */

static void forget_movable(struct vs_space *space, size_t at)
{
    memmove(&space->movable[at], &space->movable[at + 1],
            (space->movable_count - at - 1) * sizeof space->movable[0]);
    space->movable_count--;
}

/* The first one at `offset` or behind it. */
static size_t movable_from(const struct vs_space *space, uint64_t offset)
{
    size_t at = 0;
    while (at < space->movable_count && space->movable[at].offset < offset)
        at++;
    return at;
}

void vs_space_may_move(struct vs_space *space, const struct vs_extent *extent)
{
    if (extent->bytes == 0)
        return;
    if (space->movable_count == VS_SPACE_MOVABLE) {
        if (extent->offset < space->movable[0].offset)
            return;
        forget_movable(space, 0);
    }
    size_t at = movable_from(space, extent->offset);
    if (at < space->movable_count && space->movable[at].offset == extent->offset)
        return;
    memmove(&space->movable[at + 1], &space->movable[at],
            (space->movable_count - at) * sizeof space->movable[0]);
    space->movable[at] = *extent;
    space->movable_count++;
}

/* ---- chunks -------------------------------------------------------------------------- */

/* Body and padding; no chunk is there until its header is. */
static int write_body(struct vs_space *space, const struct vs_chunk_header *header,
                      const uint8_t *stored, uint64_t offset)
{
    static const uint8_t zeros[VS_TRACE_ALIGN];
    uint64_t body = offset + VS_CHUNK_HEADER_BYTES;
    uint64_t padding = vs_chunk_span(header) - VS_CHUNK_HEADER_BYTES - header->stored_bytes;
    int error = vs_space_write(space->fd, stored, header->stored_bytes, body);
    return error != 0
               ? error
               : vs_space_write(space->fd, zeros, (size_t)padding, body + header->stored_bytes);
}

static int write_header(struct vs_space *space, struct vs_chunk_header *header, uint64_t offset)
{
    uint8_t encoded[VS_CHUNK_HEADER_BYTES];
    header->number = space->chunks++;
    header->file_tag = space->file_tag;
    vs_chunk_header_encode(header, encoded);
    return vs_space_write(space->fd, encoded, sizeof encoded, offset);
}

/* The start of a room becomes the chunk; the rest is a room of its own before that. */
static int put_in_room(struct vs_space *space, size_t at, struct vs_chunk_header *header,
                       const uint8_t *stored, struct vs_extent *out)
{
    uint64_t span = vs_chunk_span(header);
    struct vs_extent rest = {space->rooms[at].offset + span, space->rooms[at].bytes - span};
    *out = (struct vs_extent){space->rooms[at].offset, span};
    int error = rest.bytes > 0 ? write_room(space, &rest) : 0;
    if (error == 0)
        error = write_body(space, header, stored, out->offset);
    if (error == 0)
        error = write_header(space, header, out->offset);
    if (error != 0)
        return error;
    space->rooms[at] = rest;
    if (rest.bytes == 0)
        drop_room(space, at);
    return 0;
}

/* What was never written is the file's end. */
static int put_at_end(struct vs_space *space, struct vs_chunk_header *header, const uint8_t *stored,
                      struct vs_extent *out)
{
    *out = (struct vs_extent){space->end, vs_chunk_span(header)};
    int error = write_body(space, header, stored, out->offset);
    if (error == 0)
        error = write_header(space, header, out->offset);
    if (error == 0)
        space->end += out->bytes;
    return error;
}

int vs_space_put(struct vs_space *space, struct vs_chunk_header *header, const uint8_t *stored,
                 bool last, struct vs_extent *out)
{
    size_t room = last ? space->room_count : find_room(space, vs_chunk_span(header));
    int error = room < space->room_count ? put_in_room(space, room, header, stored, out)
                                         : put_at_end(space, header, stored, out);
    if (error == 0 && header->type == VS_CHUNK_EVENTS)
        vs_space_may_move(space, out);
    return error;
}

int vs_space_release(struct vs_space *space, const struct vs_extent *extents, size_t count)
{
    uint64_t added[VS_SPACE_ROOMS];
    size_t added_count = 0;
    for (size_t i = 0; i < count && added_count < VS_SPACE_ROOMS; i++) {
        if (!add_room(space, &extents[i]))
            continue;
        size_t at = movable_from(space, extents[i].offset);
        if (at < space->movable_count && space->movable[at].offset == extents[i].offset)
            forget_movable(space, at);
        added[added_count++] = extents[i].offset;
    }
    /* Each room's header hides everything in it: one write for all that came together. */
    uint64_t written = UINT64_MAX;
    for (size_t i = 0; i < added_count; i++) {
        size_t at = room_after(space, added[i] + 1) - 1;
        if (space->rooms[at].offset == written)
            continue;
        int error = write_room(space, &space->rooms[at]);
        if (error != 0)
            return error;
        written = space->rooms[at].offset;
    }
    return 0;
}

/* ---- the end of writing --------------------------------------------------------------- */

static int cut_free_end(struct vs_space *space)
{
    if (space->room_count == 0)
        return 0;
    const struct vs_extent *last = &space->rooms[space->room_count - 1];
    if (end_of(last) != space->end)
        return 0;
    if (ftruncate(space->fd, (off_t)last->offset) != 0)
        return -errno;
    space->end = last->offset;
    space->room_count--;
    return 0;
}

/* The same payload under a new number: of two chunks with the same entries either will do. */
static int move(struct vs_space *space, const struct vs_extent *from, bool last)
{
    uint8_t *bytes = malloc(from->bytes);
    struct vs_chunk_header header;
    struct vs_extent to;
    if (bytes == NULL)
        return -ENOMEM;
    int error = read_at(space->fd, bytes, from->bytes, from->offset);
    if (error == 0 && !vs_chunk_header_decode(bytes, &header))
        error = -EBADMSG;
    if (error == 0)
        error = vs_space_put(space, &header, bytes + VS_CHUNK_HEADER_BYTES, last, &to);
    free(bytes);
    if (error != 0)
        return error;
    vs_space_may_move(space, &to);
    return vs_space_release(space, from, 1);
}

/* The last chunk, if some room takes it; else the one behind a room, which then is before it. */
static const struct vs_extent *next_to_move(const struct vs_space *space, bool *last)
{
    const struct vs_extent *end =
        space->movable_count > 0 ? &space->movable[space->movable_count - 1] : NULL;
    if (end == NULL)
        return NULL;
    *last = end_of(end) != space->end || find_room(space, end->bytes) == space->room_count;
    if (!*last)
        return end;
    for (size_t i = 0; i < space->room_count; i++) {
        size_t at = movable_from(space, end_of(&space->rooms[i]));
        if (at < space->movable_count && space->movable[at].offset == end_of(&space->rooms[i]))
            return &space->movable[at];
    }
    return NULL;
}

/* Moving by way of the end keeps every chunk whole in one place at any moment. */
int vs_space_settle(struct vs_space *space)
{
    int error = cut_free_end(space);
    const struct vs_extent *next;
    uint64_t moved = 0;
    bool last;
    while (error == 0 && moved < SETTLE_MOST_BYTES && space->room_count < VS_SPACE_ROOMS &&
           (next = next_to_move(space, &last)) != NULL) {
        struct vs_extent from = *next;
        moved += from.bytes;
        error = move(space, &from, last);
        if (error == 0)
            error = cut_free_end(space);
    }
    return error;
}
