/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protocol-buffer messages, written field by field into memory that grows; one
 * message at a time, so that an export is never wholly in memory. The wire format:
 * protobuf.dev/programming-guides/encoding.
 */
#ifndef VS_EXPORT_PROTO_H
#define VS_EXPORT_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sink.h"

/* Zero is an empty message. */
struct vs_proto {
    uint8_t *data;
    size_t used, room;
    bool failed; /* no memory: what follows is dropped */
};

void vs_proto_release(struct vs_proto *message);
static inline void vs_proto_clear(struct vs_proto *message)
{
    message->used = 0;
}

/* A number, written even if it is 0. */
void vs_proto_number(struct vs_proto *message, uint32_t field, uint64_t value);
void vs_proto_signed(struct vs_proto *message, uint32_t field, int64_t value);
/* The same, left out if it is 0, as proto3 has it. */
void vs_proto_count(struct vs_proto *message, uint32_t field, uint64_t value);
void vs_proto_bytes(struct vs_proto *message, uint32_t field, const void *data, size_t bytes);
void vs_proto_text(struct vs_proto *message, uint32_t field, const char *text);
void vs_proto_message(struct vs_proto *message, uint32_t field, const struct vs_proto *inner);
/* Numbers of a repeated field, packed. */
void vs_proto_packed(struct vs_proto *message, uint32_t field, const uint64_t *values,
                     size_t count);
/* `inner` as a field of a message that `sink` is. Fails the sink when memory was short. */
void vs_proto_put(struct vs_sink *sink, uint32_t field, const struct vs_proto *inner);

#endif
