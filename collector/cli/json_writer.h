/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A JSON object written member by member, and its long lists item by item: only
 * one item is in memory at a time. The text is what jansson writes of the whole
 * with JSON_INDENT(1).
 */
#ifndef VS_CLI_JSON_WRITER_H
#define VS_CLI_JSON_WRITER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct json_writer {
    FILE *out;
    size_t indent;   /* spaces before each further line of the value being written */
    bool has_member; /* of the object */
    bool has_item;   /* of the list that is open */
    bool failed;     /* a value could not be made: no memory */
};

void json_writer_begin(struct json_writer *writer, FILE *out);
/* These take over `value`; NULL is remembered as a failure. */
void json_writer_member(struct json_writer *writer, const char *name, json_t *value);
void json_writer_item(struct json_writer *writer, json_t *value);
void json_writer_begin_list(struct json_writer *writer, const char *name);
void json_writer_end_list(struct json_writer *writer);
/* Whether all of it could be made; how writing went, the stream knows. */
bool json_writer_end(struct json_writer *writer);

#endif
