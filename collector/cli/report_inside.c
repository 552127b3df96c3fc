/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything that a trace discloses, by kind: how many different values, how many
 * of them are tokens in the place of hidden ones, and a few of the others. Read
 * from the definitions themselves, those that no event uses included.
 */
#include "report_inside.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "page.h"
#include "private_path.h"
#include "python_path.h"
#include "redact.h"
#include "redact_text.h"
#include "trace_argument.h"

enum { EXAMPLES = 3, VALUE_ROOM = 1024, NS_PER_SECOND = 1000000000 };

enum kind {
    HOST,
    USERS,
    BOOT_ID,
    PROCESS_IDS,
    TITLES,
    JOB,
    SETTINGS,
    PROGRAM,
    OWN_PATHS,
    PACKAGE_PATHS,
    SYSTEM_PATHS,
    BUILD_IDS,
    PYTHON_NAMES,
    NATIVE_NAMES,
    THREADS,
    NAMES,
    DEVICES,
    OTHER_FACTS,
    KINDS
};

static const char *const kind_titles[KINDS] = {
    [HOST] = "host name",
    [USERS] = "user names, as paths have them",
    [BOOT_ID] = "boot id of the machine",
    [PROCESS_IDS] = "process numbers",
    [TITLES] = "process titles",
    [JOB] = "job and ranks",
    [SETTINGS] = "settings (environment)",
    [PROGRAM] = "the program",
    [OWN_PATHS] = "paths outside of packages",
    [PACKAGE_PATHS] = "paths of Python packages",
    [SYSTEM_PATHS] = "paths of the system",
    [BUILD_IDS] = "build ids of libraries",
    [PYTHON_NAMES] = "names of Python functions",
    [NATIVE_NAMES] = "names of native functions",
    [THREADS] = "thread names",
    [NAMES] = "names of calls, marks, phases",
    [DEVICES] = "devices: name, UUID, PCI id",
    [OTHER_FACTS] = "the recorder's own facts",
};

/* Different values of each kind, as keys in the order they were met. */
struct inside {
    json_t *values[KINDS];
};

static int note_bytes(struct inside *inside, enum kind kind, const char *text, size_t bytes)
{
    char value[VALUE_ROOM];
    if (bytes == 0)
        return 0;
    snprintf(value, sizeof(value), "%.*s", (int)(bytes < VALUE_ROOM ? bytes : VALUE_ROOM - 1),
             text);
    for (char *at = value; *at != 0; at++)
        if ((unsigned char)*at < ' ')
            *at = ' ';
    return json_object_set_new_nocheck(inside->values[kind], value, json_true()) == 0 ? 0 : -1;
}

static int note(struct inside *inside, enum kind kind, const char *text)
{
    return note_bytes(inside, kind, text, strlen(text));
}

/* A path, and the user in it. */
static int note_path(struct inside *inside, const char *path)
{
    static const char *const roots[] = {"/usr/", "/lib/", "/lib64/"};
    const char *user = NULL;
    size_t user_bytes = vs_private_user(path, &user);
    enum kind kind = vs_python_library_part(path) != NULL ? PACKAGE_PATHS : OWN_PATHS;
    for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]) && kind == OWN_PATHS; i++)
        if (strncmp(path, roots[i], strlen(roots[i])) == 0)
            kind = SYSTEM_PATHS;
    int error = note(inside, kind, path);
    return error == 0 && user_bytes != 0 ? note_bytes(inside, USERS, user, user_bytes) : error;
}

/* ---- facts ---------------------------------------------------------------------------------- */

static const struct {
    const char *key;
    enum kind kind;
} facts[] = {
    {"host", HOST},
    {"boot_id", BOOT_ID},
    {"pid", PROCESS_IDS},
    {"host_pid", PROCESS_IDS},
    {"pids", PROCESS_IDS},
    {"parent_pid", PROCESS_IDS},
    {"forked_from", PROCESS_IDS},
    {"title", TITLES},
    {"title_end", TITLES},
    {"rank", JOB},
    {"local_rank", JOB},
    {"world_size", JOB},
    {"ranks", JOB},
    {"job_id", JOB},
    {"settings", SETTINGS},
    {"exe", PROGRAM},
};

static enum kind kind_of_fact(const char *key, enum kind outer)
{
    for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++)
        if (strcmp(facts[i].key, key) == 0)
            return facts[i].kind;
    return outer;
}

static int note_value(struct inside *inside, enum kind kind, const char *key, const json_t *value)
{
    char text[VALUE_ROOM];
    if (json_is_string(value) && (kind == PROGRAM || strcmp(key, "path") == 0))
        return note_path(inside, json_string_value(value)) != 0
                   ? -1
                   : note(inside, kind, json_string_value(value));
    if (json_is_string(value) && (kind == SETTINGS || kind == JOB || kind == OTHER_FACTS))
        snprintf(text, sizeof(text), "%s=%s", key, json_string_value(value));
    else if (json_is_string(value))
        snprintf(text, sizeof(text), "%s", json_string_value(value));
    else if (json_is_integer(value) && kind != OTHER_FACTS)
        snprintf(text, sizeof(text), "%s=%" JSON_INTEGER_FORMAT, key, json_integer_value(value));
    else
        return 0; /* counts of the recording */
    return note(inside, kind, text);
}

static int note_facts(struct inside *inside, enum kind outer, const char *key, json_t *value)
{
    enum kind kind = kind_of_fact(key, outer);
    const char *name;
    json_t *item;
    size_t index;
    int error = 0;
    json_object_foreach(value, name, item)
    {
        error = error != 0 ? error : note_facts(inside, kind, name, item);
    }
    json_array_foreach(value, index, item)
    {
        error = error != 0 ? error : note_facts(inside, kind, key, item);
    }
    return error != 0 || json_is_object(value) || json_is_array(value)
               ? error
               : note_value(inside, kind, key, value);
}

/* ---- definitions ---------------------------------------------------------------------------- */

static int note_hexadecimal(struct inside *inside, enum kind kind, const struct vs_text *text)
{
    char digits[2 * 32 + 1] = "";
    for (size_t i = 0; i < text->bytes && i < 32; i++)
        snprintf(digits + 2 * i, 3, "%02x", (unsigned char)text->data[i]);
    return note(inside, kind, digits);
}

static int note_file(struct inside *inside, const struct vs_text *text)
{
    char path[VALUE_ROOM];
    if (text->bytes == 0)
        return 0;
    snprintf(path, sizeof(path), "%.*s", (int)(text->bytes < VALUE_ROOM ? text->bytes : VALUE_ROOM),
             text->data);
    return note_path(inside, path);
}

static int note_device(struct inside *inside, const struct vs_table_row *row)
{
    int error = note_hexadecimal(inside, DEVICES, &row->texts[0]);
    for (size_t i = 2; i < VS_TABLE_TEXTS && error == 0; i++)
        error = note_bytes(inside, DEVICES, row->texts[i].data, row->texts[i].bytes);
    return error;
}

static int note_meta(struct inside *inside, const struct vs_table_row *row)
{
    json_t *object = json_loadb(row->texts[1].data, row->texts[1].bytes, 0, NULL);
    int error = object == NULL ? 0 : note_facts(inside, OTHER_FACTS, "", object);
    json_decref(object);
    return error;
}

static int note_row(void *self, uint16_t chunk_type, const struct vs_table_row *row)
{
    static const struct {
        uint16_t chunk_type;
        enum kind kind;
    } names[] = {{VS_CHUNK_STRINGS, NAMES},
                 {VS_CHUNK_THREADS, THREADS},
                 {VS_CHUNK_CODES, PYTHON_NAMES},
                 {VS_CHUNK_SYMBOLS, NATIVE_NAMES}};
    struct inside *inside = self;
    int error = 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && error == 0; i++)
        if (names[i].chunk_type == chunk_type)
            error = note_bytes(inside, names[i].kind, row->texts[0].data, row->texts[0].bytes);
    if (error == 0 && (chunk_type == VS_CHUNK_CODES || chunk_type == VS_CHUNK_SYMBOLS ||
                       chunk_type == VS_CHUNK_MODULES))
        error = note_file(inside, &row->texts[1]);
    if (error == 0 && chunk_type == VS_CHUNK_MODULES)
        error = note_hexadecimal(inside, BUILD_IDS, &row->texts[0]);
    if (error == 0 && chunk_type == VS_CHUNK_DEVICES)
        error = note_device(inside, row);
    if (error == 0 && chunk_type == VS_CHUNK_META)
        error = note_meta(inside, row);
    return error;
}

/* ---- the list ------------------------------------------------------------------------------- */

/* A value whose private part is a token: all of it, or behind the "NAME=" of a setting. */
static bool is_hidden(const char *value)
{
    const char *equals = strchr(value, '=');
    return vs_private_is_token(value) || (equals != NULL && vs_private_is_token(equals + 1));
}

static void print_kind(const struct page *page, enum kind kind, json_t *values, bool full)
{
    size_t hidden = 0, shown = 0, count = json_object_size(values);
    const char *value;
    json_t *item;
    json_object_foreach(values, value, item)
    {
        hidden += is_hidden(value);
    }
    fprintf(page->out, "  %-30s %6zu", kind_titles[kind], count);
    if (hidden != 0)
        fprintf(page->out, ", %zu of them hidden", hidden);
    fputc('\n', page->out);
    for (int hidden_ones = 0; hidden_ones <= 1; hidden_ones++)
        json_object_foreach(values, value, item)
        {
            if (is_hidden(value) == (hidden_ones != 0) && (full || shown < EXAMPLES) && ++shown)
                fprintf(page->out, "      %s\n",
                        full ? value : page_fit(value, PAGE_WIDTH - 6).text);
        }
    if (shown < count)
        fprintf(page->out, "      … %zu more\n", count - shown);
}

static void print_start(const struct page *page, const struct vs_reader *reader)
{
    const char *text = vs_reader_meta(reader, "clock");
    json_t *clock = text == NULL ? NULL : json_loads(text, 0, NULL);
    const json_t *real = json_object_get(json_object_get(clock, "start"), "real_ns");
    time_t seconds = json_is_integer(real) ? (time_t)(json_integer_value(real) / NS_PER_SECOND) : 0;
    struct tm day;
    char words[64];
    if (json_is_integer(real) && gmtime_r(&seconds, &day) != NULL &&
        strftime(words, sizeof(words), "%Y-%m-%d %H:%M:%S UTC", &day) > 0)
        fprintf(page->out, "  %-30s %6d\n      %s\n", "date and time", 1, words);
    json_decref(clock);
}

/* What every trace holds, and what none does. */
static void print_events(const struct page *page, const struct vs_reader *reader)
{
    const struct vs_trace_status *status = vs_reader_status(reader);
    fprintf(page->out, "  %-30s %6" PRIu64 "\n", "events", status->events);
    page_wrap(page, 6,
              "each with its time, call, size, address and handles in the program's own address "
              "space, result, thread and stack");
    fprintf(page->out, "  %-30s %6zu\n", "stacks", vs_reader_stack_count(reader));
    fputs(
        "\nNever in a trace: contents of memory, the program's arguments, other variables of the\n"
        "environment, source code.\n",
        page->out);
}

static void print_all(const struct page *page, const char *name, const struct inside *inside,
                      const struct vs_reader *reader, bool full)
{
    fprintf(page->out, "%s%s%s discloses, as different values of each kind:\n", page_bold(page),
            name, page_plain(page));
    for (enum kind kind = 0; kind < KINDS; kind++)
        if (json_object_size(inside->values[kind]) != 0)
            print_kind(page, kind, inside->values[kind], full);
    print_start(page, reader);
    print_events(page, reader);
}

bool report_print_inside(FILE *out, const char *path, const char *name, bool full, bool *whole)
{
    struct inside inside = {0};
    struct vs_reader *reader = NULL;
    struct vs_error error = {{0}};
    for (enum kind kind = 0; kind < KINDS; kind++)
        inside.values[kind] = json_object();
    int result = vs_definition_rows(path, note_row, &inside, &error);
    if (result == 0)
        result = vs_reader_open(path, &reader, &error);
    if (result == 0) {
        struct page page = page_open(out);
        print_all(&page, name, &inside, reader, full);
        if (whole != NULL)
            *whole = !tell_damage(path, vs_reader_status(reader), 0);
    } else {
        fprintf(stderr, "vramscope: %s\n", error.text[0] != 0 ? error.text : "no memory is left");
    }
    vs_reader_close(reader);
    for (enum kind kind = 0; kind < KINDS; kind++)
        json_decref(inside.values[kind]);
    return result == 0;
}
