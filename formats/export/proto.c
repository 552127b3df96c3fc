/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of messages: see proto.h. */
#include "proto.h"

#include <errno.h>
#include <stdlib.h>

enum { VARINT_BYTES = 10, WIRE_VARINT = 0, WIRE_BYTES = 2 };

void vs_proto_release(struct vs_proto *message)
{
    free(message->data);
    *message = (struct vs_proto){0};
}

static size_t encode(uint8_t *out, uint64_t value)
{
    size_t length = 0;
    for (; value >= 0x80; value >>= 7)
        out[length++] = (uint8_t)(value | 0x80);
    out[length++] = (uint8_t)value;
    return length;
}

static void put(struct vs_proto *message, const void *data, size_t bytes)
{
    if (message->used + bytes > message->room) {
        size_t room = (message->used + bytes) * 2 + 64;
        uint8_t *grown = realloc(message->data, room);
        if (grown == NULL) {
            message->failed = true;
            return;
        }
        message->data = grown;
        message->room = room;
    }
    if (bytes != 0)
        memcpy(message->data + message->used, data, bytes);
    message->used += bytes;
}

static void put_varint(struct vs_proto *message, uint64_t value)
{
    uint8_t bytes[VARINT_BYTES];
    put(message, bytes, encode(bytes, value));
}

void vs_proto_number(struct vs_proto *message, uint32_t field, uint64_t value)
{
    put_varint(message, (uint64_t)field << 3 | WIRE_VARINT);
    put_varint(message, value);
}

void vs_proto_signed(struct vs_proto *message, uint32_t field, int64_t value)
{
    vs_proto_number(message, field, (uint64_t)value);
}

void vs_proto_count(struct vs_proto *message, uint32_t field, uint64_t value)
{
    if (value != 0)
        vs_proto_number(message, field, value);
}

void vs_proto_bytes(struct vs_proto *message, uint32_t field, const void *data, size_t bytes)
{
    put_varint(message, (uint64_t)field << 3 | WIRE_BYTES);
    put_varint(message, bytes);
    put(message, data, bytes);
}

void vs_proto_text(struct vs_proto *message, uint32_t field, const char *text)
{
    vs_proto_bytes(message, field, text, strlen(text));
}

void vs_proto_message(struct vs_proto *message, uint32_t field, const struct vs_proto *inner)
{
    message->failed |= inner->failed;
    vs_proto_bytes(message, field, inner->data, inner->used);
}

void vs_proto_packed(struct vs_proto *message, uint32_t field, const uint64_t *values, size_t count)
{
    uint8_t bytes[VARINT_BYTES];
    size_t length = 0;
    for (size_t i = 0; i < count; i++)
        length += encode(bytes, values[i]);
    put_varint(message, (uint64_t)field << 3 | WIRE_BYTES);
    put_varint(message, length);
    for (size_t i = 0; i < count; i++)
        put_varint(message, values[i]);
}

void vs_proto_put(struct vs_sink *sink, uint32_t field, const struct vs_proto *inner)
{
    uint8_t head[2 * VARINT_BYTES];
    size_t bytes = encode(head, (uint64_t)field << 3 | WIRE_BYTES);
    bytes += encode(head + bytes, inner->used);
    if (inner->failed)
        vs_sink_fail(sink, -ENOMEM);
    vs_sink_put(sink, head, bytes);
    vs_sink_put(sink, inner->data, inner->used);
}
