/* SPDX-License-Identifier: Apache-2.0 */
/* JSON written piece by piece: see json_writer.h. */
#include "json_writer.h"

#include <string.h>

enum { MEMBER_INDENT = 1, ITEM_INDENT = 2 };

static void new_line(struct json_writer *writer)
{
    fprintf(writer->out, "\n%*s", (int)writer->indent, "");
}

/* Moves every further line of a value in by what it stands in; texts have no line ends. */
static int put(const char *text, size_t bytes, void *data)
{
    struct json_writer *writer = data;
    for (const char *end; (end = memchr(text, '\n', bytes)) != NULL;) {
        fwrite(text, 1, (size_t)(end - text), writer->out);
        new_line(writer);
        bytes -= (size_t)(end + 1 - text);
        text = end + 1;
    }
    fwrite(text, 1, bytes, writer->out);
    return 0;
}

static void put_value(struct json_writer *writer, json_t *value)
{
    if (value == NULL ||
        json_dump_callback(value, put, writer, JSON_INDENT(1) | JSON_ENCODE_ANY) != 0)
        writer->failed = true;
    json_decref(value);
}

static void put_name(struct json_writer *writer, const char *name)
{
    if (writer->has_member)
        putc(',', writer->out);
    writer->has_member = true;
    writer->indent = MEMBER_INDENT;
    new_line(writer);
    fprintf(writer->out, "\"%s\": ", name);
}

void json_writer_begin(struct json_writer *writer, FILE *out)
{
    *writer = (struct json_writer){.out = out};
    putc('{', out);
}

void json_writer_member(struct json_writer *writer, const char *name, json_t *value)
{
    put_name(writer, name);
    put_value(writer, value);
}

void json_writer_begin_list(struct json_writer *writer, const char *name)
{
    put_name(writer, name);
    putc('[', writer->out);
    writer->indent = ITEM_INDENT;
    writer->has_item = false;
}

void json_writer_item(struct json_writer *writer, json_t *value)
{
    if (writer->has_item)
        putc(',', writer->out);
    writer->has_item = true;
    new_line(writer);
    put_value(writer, value);
}

void json_writer_end_list(struct json_writer *writer)
{
    writer->indent = MEMBER_INDENT;
    if (writer->has_item)
        new_line(writer);
    putc(']', writer->out);
}

bool json_writer_end(struct json_writer *writer)
{
    writer->indent = 0;
    if (writer->has_member)
        new_line(writer);
    putc('}', writer->out);
    return !writer->failed;
}
