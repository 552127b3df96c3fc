/* SPDX-License-Identifier: Apache-2.0 */
/* Quoted names by id: see texts.h. */
#include "texts.h"

#include <errno.h>
#include <stdlib.h>

#define MODULE_KEY (1ULL << 32)
#define KIND_KEY (2ULL << 32)

/* ---- quoting ----------------------------------------------------------------------------------
 */

char *vs_quote_csv(char *out, const char *text)
{
    bool plain = strpbrk(text, ",\"\r\n") == NULL;
    if (!plain)
        *out++ = '"';
    for (; *text != 0; text++) {
        if (*text == '"')
            *out++ = '"';
        *out++ = *text;
    }
    if (!plain)
        *out++ = '"';
    return out;
}

size_t vs_utf8_sequence(const char *string)
{
    const unsigned char *text = (const unsigned char *)string;
    static const struct {
        unsigned char least, most, second_least, second_most;
        size_t bytes;
    } forms[] = {
        {0x01, 0x7f, 0, 0xff, 1},    {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4}};
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        if (text[0] < forms[i].least || text[0] > forms[i].most)
            continue;
        if (forms[i].bytes > 1 &&
            (text[1] < forms[i].second_least || text[1] > forms[i].second_most))
            return 0;
        for (size_t at = 2; at < forms[i].bytes; at++)
            if ((text[at] & 0xc0) != 0x80)
                return 0;
        return forms[i].bytes;
    }
    return 0;
}

static char *escape_json(char *out, unsigned char byte)
{
    static const char digits[] = "0123456789abcdef";
    if (byte == '"' || byte == '\\') {
        *out++ = '\\';
        *out++ = (char)byte;
        return out;
    }
    out = vs_put_bytes(out, "\\u00", 4);
    *out++ = digits[byte >> 4];
    *out++ = digits[byte & 15];
    return out;
}

char *vs_quote_json(char *out, const char *text)
{
    *out++ = '"';
    while (*text != 0) {
        size_t bytes = vs_utf8_sequence(text);
        if (bytes == 0)
            out = vs_put_bytes(out, "\xef\xbf\xbd", 3);
        else if (bytes == 1 && (*text < ' ' || *text == '"' || *text == '\\'))
            out = escape_json(out, (unsigned char)*text);
        else
            out = vs_put_bytes(out, text, bytes);
        text += bytes == 0 ? 1 : bytes;
    }
    *out++ = '"';
    return out;
}

void vs_sink_json_text(struct vs_sink *sink, const char *text)
{
    size_t room = strlen(text) * 6 + 2;
    if (room <= VS_SINK_ROOM) {
        char *at = vs_sink_room(sink, room);
        vs_sink_wrote(sink, vs_quote_json(at, text));
        return;
    }
    char *quoted = malloc(room);
    if (quoted == NULL) {
        vs_sink_fail(sink, -ENOMEM);
        return;
    }
    vs_sink_put(sink, quoted, (size_t)(vs_quote_json(quoted, text) - quoted));
    free(quoted);
}

/* ---- by id --------------------------------------------------------------------------------------
 */

struct vs_texts *vs_texts_new(const struct vs_export *export, vs_quote *quote)
{
    struct vs_texts *texts = calloc(1, sizeof(*texts));
    if (texts != NULL) {
        texts->export = export;
        texts->quote = quote;
    }
    return texts;
}

void vs_texts_free(struct vs_texts *texts)
{
    if (texts == NULL)
        return;
    vs_quoted_map_release(&texts->others);
    vs_arena_free(&texts->arena);
    free(texts);
}

static struct vs_quoted quoted(struct vs_texts *texts, const char *text)
{
    struct vs_quoted none = {"", 0};
    if (text == NULL || text[0] == 0)
        return none;
    size_t bytes = strlen(text);
    /* A name longer than a row has room for is cut: a recorder's own bound is far below. */
    if (bytes > VS_SINK_ROOM / 64)
        bytes = VS_SINK_ROOM / 64;
    char *copy = malloc(bytes + 1), *out = malloc(bytes * 6 + 2);
    char *kept = NULL;
    size_t length = 0;
    if (copy != NULL && out != NULL) {
        memcpy(copy, text, bytes);
        copy[bytes] = 0;
        length = (size_t)(texts->quote(out, copy) - out);
        kept = vs_arena_text(&texts->arena, out, length);
    }
    free(copy);
    free(out);
    texts->failed |= kept == NULL;
    return kept == NULL ? none : (struct vs_quoted){kept, length};
}

static struct vs_quoted look_up(struct vs_texts *texts, uint64_t key, const char *text)
{
    struct vs_quoted made = quoted(texts, text);
    struct vs_quoted *slot = vs_quoted_map_put(&texts->others, key);
    if (slot == NULL)
        texts->failed = true;
    else
        *slot = made;
    return made;
}

struct vs_quoted vs_texts_string(struct vs_texts *texts, uint32_t id)
{
    if (id <= UINT16_MAX) {
        struct vs_quoted *slot = &texts->strings[id];
        if (slot->data == NULL)
            *slot = quoted(texts, id == 0 ? NULL : vs_reader_string(texts->export->reader, id));
        return *slot;
    }
    const struct vs_quoted *known = vs_quoted_map_get(&texts->others, id);
    return known != NULL ? *known : look_up(texts, id, vs_reader_string(texts->export->reader, id));
}

struct vs_quoted vs_texts_module(struct vs_texts *texts, uint32_t id)
{
    uint64_t key = MODULE_KEY | id;
    const struct vs_quoted *known = vs_quoted_map_get(&texts->others, key);
    if (known != NULL)
        return *known;
    const struct vs_module_def *module =
        id == 0 ? NULL : vs_reader_module(texts->export->reader, id);
    return look_up(texts, key, module == NULL ? NULL : module->path);
}

struct vs_quoted vs_texts_label(struct vs_texts *texts, const struct vs_event *event)
{
    if (event->kind == VS_KIND_LOSS) {
        const struct vs_quoted *known = vs_quoted_map_get(&texts->others, KIND_KEY | event->label);
        return known != NULL ? *known
                             : look_up(texts, KIND_KEY | event->label, vs_kind_name(event->label));
    }
    if (event->kind == VS_KIND_MARK || event->kind == VS_KIND_PHASE_BEGIN)
        return vs_texts_string(texts, (uint32_t)event->extra[0]);
    return vs_texts_string(texts, event->label != 0 ? event->label : event->call);
}

const char *vs_export_error(const struct vs_export *export, const struct vs_event *event,
                            char *buffer, size_t bytes)
{
    uint32_t call = event->label != 0 ? event->label : event->call;
    const char *name = call == 0 ? NULL : vs_reader_string(export->reader, call);
    return vs_cuda_error_name(name == NULL ? "" : name, event->result, buffer, bytes);
}
