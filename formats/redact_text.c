/* SPDX-License-Identifier: Apache-2.0 */
/* Private words of a trace's texts: see redact_text.h. */
#include "redact_text.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "private_path.h"

#define LINK_MARK "://"
#define LINK_MARK_BYTES (sizeof LINK_MARK - 1)
#define THREAD_NAME_MOST 15U /* the kernel cuts a longer one */

/* ---- words ---------------------------------------------------------------------------- */

static int add_word(struct vs_private_words *words, const char *text, size_t bytes, bool title)
{
    for (size_t i = 0; i < words->count; i++)
        if (words->items[i].title == title && strlen(words->items[i].text) == bytes &&
            memcmp(words->items[i].text, text, bytes) == 0)
            return 0;
    if (bytes == 0 || vs_private_is_token(text))
        return 0;
    if (words->count == words->room) {
        size_t room = words->room == 0 ? 16 : words->room * 2;
        struct vs_private_word *items = realloc(words->items, room * sizeof *items);
        if (items == NULL)
            return -ENOMEM;
        words->items = items;
        words->room = room;
    }
    char *copy = strndup(text, bytes);
    if (copy == NULL)
        return -ENOMEM;
    words->items[words->count++] = (struct vs_private_word){copy, title};
    return 0;
}

void vs_private_words_free(struct vs_private_words *words)
{
    for (size_t i = 0; i < words->count; i++)
        free(words->items[i].text);
    free(words->items);
    *words = (struct vs_private_words){0};
}

size_t vs_private_user(const char *path, const char **user)
{
    static const char *const homes[] = {"/home/", "/Users/", "/users/"};
    for (size_t i = 0; i < sizeof homes / sizeof homes[0]; i++) {
        const char *found = strstr(path, homes[i]);
        if (found == NULL)
            continue;
        *user = found + strlen(homes[i]);
        return strcspn(*user, "/");
    }
    return 0;
}

/* A host as it is called in full, and by its first name. */
static int note_host(struct vs_private_words *words, const char *host)
{
    int error = add_word(words, host, strlen(host), false);
    return error != 0 ? error : add_word(words, host, strcspn(host, "."), false);
}

static int note_title(struct vs_private_words *words, const char *title)
{
    return add_word(words, title, strlen(title), true);
}

static int note_user(struct vs_private_words *words, const char *text)
{
    const char *user;
    size_t bytes = vs_private_user(text, &user);
    return bytes == 0 ? 0 : add_word(words, user, bytes, false);
}

static int note_fact(struct vs_private_words *words, const char *key, const char *text)
{
    const char *slash = strrchr(text, '/');
    int error = note_user(words, text);
    if (error == 0 && strcmp(key, "host") == 0)
        error = note_host(words, text);
    else if (error == 0 && (strcmp(key, "title") == 0 || strcmp(key, "title_end") == 0))
        error = note_title(words, text);
    else if (error == 0 && strcmp(key, "exe") == 0)
        error = note_title(words, slash == NULL ? text : slash + 1);
    return error;
}

static int note_facts(struct vs_private_words *words, const char *key, const json_t *value)
{
    const char *name;
    json_t *item;
    size_t index;
    int error = 0;
    if (json_is_string(value))
        return note_fact(words, key, json_string_value(value));
    json_object_foreach((json_t *)(uintptr_t)value, name, item)
    {
        error = error != 0 ? error : note_facts(words, name, item);
    }
    json_array_foreach(value, index, item)
    {
        error = error != 0 ? error : note_facts(words, key, item);
    }
    return error;
}

static int note_text(struct vs_private_words *words, const struct vs_text *text)
{
    char *copy = strndup(text->data == NULL ? "" : text->data, text->bytes);
    int error = copy == NULL ? -ENOMEM : note_user(words, copy);
    free(copy);
    return error;
}

int vs_private_words_note(struct vs_private_words *words, uint16_t chunk_type,
                          const struct vs_table_row *row)
{
    if (chunk_type == VS_CHUNK_META) {
        json_t *facts = json_loadb(row->texts[1].data, row->texts[1].bytes, 0, NULL);
        int error = note_facts(words, "", facts);
        json_decref(facts);
        return error;
    }
    return chunk_type == VS_CHUNK_MODULES || chunk_type == VS_CHUNK_CODES ||
                   chunk_type == VS_CHUNK_SYMBOLS
               ? note_text(words, &row->texts[1])
               : 0;
}

/* ---- texts without a form ---------------------------------------------------------------- */

static bool is_name_character(char character)
{
    return isalnum((unsigned char)character) || strchr("._-~", character) != NULL;
}

/* Bytes at the start of `text` before a blank, a quotation mark or one of `ends`. */
static size_t run_length(const char *text, size_t bytes, const char *ends)
{
    size_t length = 0;
    while (length < bytes && text[length] != 0 && !isspace((unsigned char)text[length]) &&
           strchr("\"'`", text[length]) == NULL && strchr(ends, text[length]) == NULL)
        length++;
    return length;
}

static bool starts(const char *text, size_t bytes, const char *start)
{
    size_t length = strlen(start);
    return bytes >= length && memcmp(text, start, length) == 0;
}

/* Bytes of the path at the start of `text`, 0 when there is none: /a/b, ~user/a, ./a and ../a; of
 * "epoch/1" nobody knows whether it is one. */
static size_t path_length(const char *text, size_t bytes)
{
    size_t length = run_length(text, bytes, ",;:()<>|[]{}="), slashes = 0;
    for (size_t i = 0; i < length; i++)
        slashes += text[i] == '/';
    bool absolute = length > 1 && text[0] == '/' && text[1] != '/' && slashes > 1;
    bool relative = slashes > 0 &&
                    (text[0] == '~' || starts(text, length, "./") || starts(text, length, "../"));
    return absolute || relative ? length : 0;
}

/* The same of C:\a and \\server\a, whose parts nobody reads. */
static size_t windows_path_length(const char *text, size_t bytes)
{
    bool drive = bytes > 3 && isalpha((unsigned char)text[0]) && starts(text + 1, bytes - 1, ":\\");
    bool server = bytes > 2 && starts(text, bytes, "\\\\") && isalnum((unsigned char)text[2]);
    return drive || server ? run_length(text, bytes, ",;()<>|") : 0;
}

/* Bytes of the user@host.domain at the start of `text`; the last part of it is letters, as that of
 * "name@VERSION_2.34" is not. */
static size_t address_length(const char *text, size_t bytes)
{
    size_t user = 0, end, dot = 0;
    while (user < bytes && (is_name_character(text[user]) || text[user] == '+'))
        user++;
    if (user == 0 || user == bytes || text[user] != '@')
        return 0;
    for (end = user + 1; end < bytes && is_name_character(text[end]); end++)
        if (text[end] == '.')
            dot = end;
    for (size_t i = dot + 1; i < end; i++)
        if (!isalpha((unsigned char)text[i]))
            return 0;
    return dot != 0 && end - dot > 2 ? end : 0;
}

/* What follows the "://" at the start of `text`: hosts, names, tokens for access. */
static size_t link_length(const char *text, size_t bytes, char before)
{
    bool is = isalnum((unsigned char)before) && starts(text, bytes, LINK_MARK);
    return is ? run_length(text + LINK_MARK_BYTES, bytes - LINK_MARK_BYTES, ",;()<>|") : 0;
}

/* Bytes of the longest private word at the start of `text`. */
static size_t word_length(const struct vs_private_words *words, const char *text, size_t bytes)
{
    size_t longest = 0;
    for (size_t i = 0; i < words->count; i++) {
        const struct vs_private_word *word = &words->items[i];
        size_t length = strlen(word->text);
        if (!word->title && length > longest && length <= bytes &&
            memcmp(text, word->text, length) == 0 &&
            (length == bytes || !isalnum((unsigned char)text[length])))
            longest = length;
    }
    return longest;
}

static int put_token(struct vs_redacting *redacting, const char *text, size_t bytes)
{
    char token[VS_PRIVATE_TOKEN_BYTES];
    if (bytes >= sizeof token - 1 && vs_private_is_token(text))
        return vs_bytes_append(&redacting->text, text, bytes);
    vs_private_token(text, bytes, token);
    return vs_bytes_append(&redacting->text, token, sizeof token - 1);
}

static int put_path(struct vs_redacting *redacting, const char *text, size_t bytes)
{
    size_t room = bytes + VS_PRIVATE_PATH_MORE;
    redacting->scratch.bytes = 0;
    int error = vs_bytes_reserve(&redacting->scratch, bytes + 1 + room);
    if (error != 0)
        return error;
    char *copy = (char *)redacting->scratch.data, *shown = copy + bytes + 1;
    memcpy(copy, text == NULL ? "" : text, bytes);
    copy[bytes] = 0;
    vs_private_path(copy, shown, room);
    redacting->counts->paths += strcmp(copy, shown) != 0;
    return vs_bytes_append(&redacting->text, shown, strlen(shown));
}

/* Puts the one private thing at the start of `text`, and gives its bytes; 0: there is none. */
static int put_private(struct vs_redacting *redacting, const char *text, size_t bytes, char before,
                       size_t *taken)
{
    bool begins = !is_name_character(before);
    size_t path = begins ? path_length(text, bytes) : 0, hidden = 0;
    if (path == 0 && begins && (hidden = windows_path_length(text, bytes)) == 0)
        hidden = address_length(text, bytes);
    if (path == 0 && hidden == 0 && !isalnum((unsigned char)before))
        hidden = word_length(redacting->words, text, bytes);
    *taken = path != 0 ? path : hidden;
    redacting->counts->names += hidden != 0;
    return path != 0     ? put_path(redacting, text, path)
           : hidden != 0 ? put_token(redacting, text, hidden)
                         : 0;
}

/* A text in which names and paths may stand anywhere. */
static int put_prose(struct vs_redacting *redacting, const char *text, size_t bytes)
{
    int error = 0;
    for (size_t at = 0; at < bytes && error == 0;) {
        char before = at == 0 ? ' ' : text[at - 1];
        size_t link = link_length(text + at, bytes - at, before), taken = 0;
        if (link == 0)
            error = put_private(redacting, text + at, bytes - at, before, &taken);
        size_t plain = link != 0 ? LINK_MARK_BYTES : taken == 0;
        if (error == 0)
            error = vs_bytes_append(&redacting->text, text + at, plain);
        if (error == 0 && link != 0)
            error = put_token(redacting, text + at + plain, link);
        redacting->counts->names += link != 0;
        at += plain + link + taken;
    }
    return error;
}

/* A thread called like the process is called by its title. */
static int put_thread(struct vs_redacting *redacting, const char *name, size_t bytes)
{
    for (size_t i = 0; i < redacting->words->count; i++) {
        const struct vs_private_word *word = &redacting->words->items[i];
        size_t length = strlen(word->text);
        if (!word->title || length < bytes || memcmp(word->text, name, bytes) != 0 || bytes == 0 ||
            (length > bytes && bytes < THREAD_NAME_MOST))
            continue;
        redacting->counts->threads++;
        return put_token(redacting, name, bytes);
    }
    return put_prose(redacting, name, bytes);
}

/* "<string>" and the like are no files. */
static int put_file(struct vs_redacting *redacting, const char *file, size_t bytes)
{
    return bytes > 0 && file[0] == '<' ? put_prose(redacting, file, bytes)
                                       : put_path(redacting, file, bytes);
}

/* ---- facts -------------------------------------------------------------------------------- */

static int put_fact(struct vs_redacting *redacting, bool setting, const char *key, const char *text)
{
    struct vs_redacted *counts = redacting->counts;
    size_t bytes = strlen(text);
    if (bytes == 0)
        return 0;
    if (setting && strchr(text, '/') != NULL) {
        counts->settings++;
        return put_token(redacting, text, bytes);
    }
    bool named_job = strcmp(key, "job_id") == 0 && text[strspn(text, "0123456789_.")] != 0;
    if (strcmp(key, "host") == 0 || strcmp(key, "boot_id") == 0 || named_job) {
        counts->names++;
        return put_token(redacting, text, bytes);
    }
    if (strcmp(key, "title") == 0 || strcmp(key, "title_end") == 0) {
        counts->titles++;
        return put_token(redacting, text, bytes);
    }
    if (strcmp(key, "exe") == 0 || strcmp(key, "path") == 0)
        return put_path(redacting, text, bytes);
    return put_prose(redacting, text, bytes);
}

/* The fact as it may be shown; NULL without memory. */
static json_t *hide_facts(struct vs_redacting *redacting, bool settings, const char *key,
                          json_t *value)
{
    const char *name;
    json_t *item;
    size_t index;
    if (json_is_string(value)) {
        redacting->text.bytes = 0;
        int error = put_fact(redacting, settings, key, json_string_value(value));
        const char *text = redacting->text.bytes == 0 ? "" : (const char *)redacting->text.data;
        return error != 0 ? NULL : json_stringn(text, redacting->text.bytes);
    }
    if (!json_is_object(value) && !json_is_array(value))
        return json_incref(value);
    json_t *shown = json_is_object(value) ? json_object() : json_array();
    int error = shown == NULL ? -ENOMEM : 0;
    json_object_foreach(value, name, item)
    {
        bool inside = settings || strcmp(name, "settings") == 0;
        if (error == 0)
            error = json_object_set_new(shown, name, hide_facts(redacting, inside, name, item));
    }
    json_array_foreach(value, index, item)
    {
        if (error == 0)
            error = json_array_append_new(shown, hide_facts(redacting, settings, key, item));
    }
    if (error == 0)
        return shown;
    json_decref(shown);
    return NULL;
}

/* 1, 0 when it is no JSON, or -ENOMEM. */
static int put_facts(struct vs_redacting *redacting, const struct vs_text *text)
{
    json_t *facts = json_loadb(text->data, text->bytes, 0, NULL);
    if (facts == NULL)
        return 0;
    json_t *shown = hide_facts(redacting, false, "", facts);
    char *dumped = shown == NULL ? NULL : json_dumps(shown, JSON_COMPACT);
    redacting->text.bytes = 0;
    int error =
        dumped == NULL ? -ENOMEM : vs_bytes_append(&redacting->text, dumped, strlen(dumped));
    free(dumped);
    json_decref(shown);
    json_decref(facts);
    return error != 0 ? error : 1;
}

/* ---- rows ----------------------------------------------------------------------------------- */

/* The text of each sort of row that may say something private: its place, and how it is put. */
static const struct private_text {
    uint16_t chunk_type;
    uint8_t place;
    int (*put)(struct vs_redacting *redacting, const char *text, size_t bytes);
} private_texts[] = {
    {VS_CHUNK_STRINGS, 0, put_prose}, {VS_CHUNK_THREADS, 0, put_thread},
    {VS_CHUNK_MODULES, 1, put_path},  {VS_CHUNK_CODES, 1, put_file},
    {VS_CHUNK_SYMBOLS, 1, put_file},
};

int vs_redact_row(struct vs_redacting *redacting, uint16_t chunk_type, struct vs_table_row *row)
{
    struct vs_text *text = NULL;
    int result = 1;
    redacting->text.bytes = 0;
    if (chunk_type == VS_CHUNK_META) {
        text = &row->texts[1];
        result = put_facts(redacting, text);
    }
    for (size_t i = 0; i < sizeof private_texts / sizeof private_texts[0]; i++) {
        const struct private_text *one = &private_texts[i];
        if (one->chunk_type != chunk_type)
            continue;
        text = &row->texts[one->place];
        int error = text->bytes == 0 ? 0 : one->put(redacting, text->data, text->bytes);
        result = error != 0 ? error : 1;
    }
    if (result == 1 && text != NULL)
        *text = (struct vs_text){(const char *)redacting->text.data, redacting->text.bytes};
    return result;
}

void vs_redacting_free(struct vs_redacting *redacting)
{
    vs_bytes_free(&redacting->text);
    vs_bytes_free(&redacting->scratch);
}
