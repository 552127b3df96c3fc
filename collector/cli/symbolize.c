/* SPDX-License-Identifier: Apache-2.0 */
/* vramscope symbolize: names for the native code of a trace, added later. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../privacy.h"
#include "../symbol_client.h"
#include "../symbol_wanted.h"
#include "commands.h"
#include "complete.h"
#include "page.h"
#include "trace_append.h"
#include "trace_argument.h"

#define FOLDERS_MAX 16U
#define PLACES_MOST (1U << 24)
#define STACK_BITS (1U << 27) /* ids below are looked at once; others come rarely */
#define SHOW_AFTER_NS 1000000000ULL
#define SHOW_EVERY_NS 250000000ULL

static const char help[] =
    "usage: vramscope symbolize [--debug-dir DIR]… [--again] [--json] TRACE\n"
    "\n"
    "Names the native functions of a trace that had no names yet: function, source\n"
    "file and line, inlined calls. Reads the program's own files where they are the\n"
    "same build as when the trace was made, and separate debug files; adds the names\n"
    "at the end of TRACE. The network is not asked.\n"
    "\n"
    "  --debug-dir DIR  look here as well, for files by build id (.build-id/ab/cd…),\n"
    "                   by their whole path under DIR, or by name; may come often\n"
    "  --again          ask about every address, also those with a name\n"
    "  --json           the result as JSON\n"
    "\n"
    "Exit status: 0 done, also when names stay unknown; 1 it could not.\n";

/* One module and the addresses in it that are asked about. */
struct module_work {
    const struct vs_module_def *module;
    struct symbol_module ask;
    uint64_t *addresses;
    size_t count, capacity;
    uint64_t known; /* had names before, and are not asked about */
    uint64_t answers[SYMBOL_STATUSES];
};

struct symbolize {
    const char *path;
    bool again, json;
    const char *folders[FOLDERS_MAX + 1];
    size_t folder_count;

    struct vs_reader *reader;
    struct symbol_wanted wanted;
    struct module_work *modules;
    size_t module_count;
    uint64_t asked, answered;
    bool hide; /* as the trace was made */
    int error; /* no memory */

    struct vs_appender *appender;
    struct symbol_client client;
    struct module_work *at_work;
    uint64_t began_ns, shown_ns;
    bool terminal;
};

/* ---- arguments -------------------------------------------------------------------------- */

/* Takes the folders out of argv, which may be many. The new argc, or negative after a line about
 * what is wrong. */
static int take_folders(struct symbolize *symbolize, int argc, char **argv)
{
    static const char name[] = "--debug-dir";
    const size_t bytes = sizeof(name) - 1;
    int kept = 1;
    if (complete_asked(argc, argv))
        return argc;
    for (int i = 1; i < argc; i++) {
        bool joined = strncmp(argv[i], name, bytes) == 0 && argv[i][bytes] == '=';
        if (!joined && strcmp(argv[i], name) != 0) {
            argv[kept++] = argv[i];
            continue;
        }
        const char *folder = joined ? argv[i] + bytes + 1 : argv[++i];
        if (folder == NULL || symbolize->folder_count == FOLDERS_MAX) {
            fprintf(stderr, "vramscope symbolize: %s; `vramscope symbolize --help` says how\n",
                    folder == NULL ? "a value is missing after --debug-dir"
                                   : "too many --debug-dir");
            return -1;
        }
        symbolize->folders[symbolize->folder_count++] = folder;
    }
    argv[kept] = NULL;
    return kept;
}

static int check_folders(const struct symbolize *symbolize)
{
    for (size_t i = 0; i < symbolize->folder_count; i++)
        if (access(symbolize->folders[i], R_OK | X_OK) != 0) {
            fprintf(stderr, "vramscope: --debug-dir %s: %s: give a folder with debug files\n",
                    symbolize->folders[i], strerror(errno));
            return CMD_FAILED;
        }
    return CMD_DONE;
}

/* ---- what has to be named ----------------------------------------------------------------- */

static struct module_work *work_on(struct symbolize *symbolize, const struct vs_module_def *module)
{
    for (size_t i = symbolize->module_count; i-- > 0;)
        if (symbolize->modules[i].module->id == module->id)
            return &symbolize->modules[i];
    struct module_work *grown =
        reallocarray(symbolize->modules, symbolize->module_count + 1, sizeof *symbolize->modules);
    if (grown == NULL)
        return NULL;
    symbolize->modules = grown;
    struct module_work *work = &grown[symbolize->module_count++];
    *work = (struct module_work){.module = module, .ask = {.path = module->path}};
    memcpy(work->ask.build_id, module->build_id, sizeof work->ask.build_id);
    work->ask.build_id_bytes = module->build_id_bytes;
    return work;
}

static bool add_address(struct module_work *work, uint64_t address)
{
    if (work->count == work->capacity) {
        size_t capacity = work->capacity ? work->capacity * 2 : 64;
        uint64_t *grown = reallocarray(work->addresses, capacity, sizeof *grown);
        if (grown == NULL)
            return false;
        work->addresses = grown;
        work->capacity = capacity;
    }
    work->addresses[work->count++] = address;
    return true;
}

static void want_place(void *context, const struct vs_module_def *module, uint64_t address)
{
    struct symbolize *symbolize = context;
    struct module_work *work = work_on(symbolize, module);
    bool known = vs_reader_symbol(symbolize->reader, module->id, address) != NULL;
    if (work != NULL && known && !symbolize->again) {
        work->known++;
    } else if (work == NULL || !add_address(work, address)) {
        symbolize->error = -ENOMEM;
    } else {
        symbolize->asked++;
    }
}

static bool first_time(uint8_t *seen, uint32_t id)
{
    if (id >= STACK_BITS)
        return true;
    uint8_t bit = (uint8_t)(1U << (id & 7));
    bool first = !(seen[id >> 3] & bit);
    seen[id >> 3] |= bit;
    return first;
}

static int collect_places(struct symbolize *symbolize)
{
    const struct vs_sequenced_event *events;
    size_t count;
    int got;
    uint8_t *seen = calloc(STACK_BITS / 8, 1); /* touched where ids are */
    if (seen == NULL)
        return -ENOMEM;
    symbol_wanted_init(&symbolize->wanted, PLACES_MOST);
    for (size_t i = 0; i < vs_reader_module_count(symbolize->reader); i++)
        symbol_wanted_module(&symbolize->wanted, vs_reader_module_number(symbolize->reader, i));
    while ((got = vs_reader_next_block(symbolize->reader, &events, &count)) > 0)
        for (size_t i = 0; i < count; i++) {
            uint32_t id = events[i].event.stack;
            const struct vs_stack_def *stack =
                id != 0 && first_time(seen, id) ? vs_reader_stack(symbolize->reader, id) : NULL;
            if (stack != NULL)
                symbol_wanted_stack(&symbolize->wanted, stack, want_place, symbolize);
        }
    free(seen);
    return got < 0 ? got : symbolize->error;
}

/* A trace that was made with hashed paths stays free of others. */
static bool is_private(const struct vs_reader *reader)
{
    const char *text = vs_reader_meta(reader, "process");
    json_t *process = text == NULL ? NULL : json_loads(text, 0, NULL);
    const char *value = json_string_value(
        json_object_get(json_object_get(process, "settings"), "VRAMSCOPE_PRIVATE"));
    bool hide = value != NULL && strcmp(value, "1") == 0;
    json_decref(process);
    return hide;
}

/* ---- naming --------------------------------------------------------------------------------- */

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

/* On a terminal, when it takes long. */
static void show_progress(struct symbolize *symbolize)
{
    uint64_t now = symbolize->terminal ? now_ns() : 0;
    if (!symbolize->terminal || now - symbolize->began_ns < SHOW_AFTER_NS ||
        now - symbolize->shown_ns < SHOW_EVERY_NS)
        return;
    symbolize->shown_ns = now;
    fprintf(stderr, "\rvramscope: %s of %s addresses … ", page_count(symbolize->answered).text,
            page_count(symbolize->asked).text);
}

static void clear_progress(const struct symbolize *symbolize)
{
    if (symbolize->shown_ns != 0)
        fputs("\r\033[K", stderr);
}

static void take_answer(void *context, uint64_t address, enum symbol_status status,
                        const struct vs_symbol_frame *frames, uint32_t count)
{
    static char shown[SYMBOL_FRAMES_MAX][PATH_MAX];
    struct symbolize *symbolize = context;
    struct vs_symbol_frame copies[SYMBOL_FRAMES_MAX];
    symbolize->at_work->answers[status]++;
    symbolize->answered++;
    show_progress(symbolize);
    /* What cannot be told now may be told with other folders: nothing is written about it. */
    if (status != SYMBOL_FOUND && status != SYMBOL_NOTHING_KNOWN)
        return;
    for (uint32_t i = 0; i < count; i++) {
        copies[i] = frames[i];
        if (symbolize->hide && frames[i].file[0]) {
            privacy_path(frames[i].file, shown[i], sizeof shown[i]);
            copies[i].file = shown[i];
        }
    }
    struct vs_symbol_def symbol = {symbolize->at_work->module->id, address, count, copies};
    vs_append_symbol(symbolize->appender, &symbol); /* closing tells of an error */
}

static int by_value(const void *left, const void *right)
{
    const uint64_t *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

static int name_all(struct symbolize *symbolize)
{
    int error = 0;
    symbol_client_init(&symbolize->client, symbolize->folders);
    symbolize->began_ns = now_ns();
    symbolize->terminal = isatty(STDERR_FILENO) != 0;
    for (size_t i = 0; i < symbolize->module_count && error == 0; i++) {
        struct module_work *work = &symbolize->modules[i];
        symbolize->at_work = work;
        if (work->count > 0)
            qsort(work->addresses, work->count, sizeof *work->addresses, by_value);
        for (size_t at = 0; at < work->count && error == 0; at += SYMBOL_ADDRESSES_MAX) {
            size_t some =
                work->count - at < SYMBOL_ADDRESSES_MAX ? work->count - at : SYMBOL_ADDRESSES_MAX;
            error = symbol_client_ask(&symbolize->client, &work->ask, work->addresses + at,
                                      (uint32_t)some, take_answer, symbolize);
        }
    }
    symbol_client_close(&symbolize->client);
    clear_progress(symbolize);
    return error;
}

static uint64_t named_now(const struct symbolize *symbolize)
{
    uint64_t named = 0;
    for (size_t i = 0; i < symbolize->module_count; i++)
        named += symbolize->modules[i].answers[SYMBOL_FOUND];
    return named;
}

static void append_facts(struct symbolize *symbolize)
{
    char text[128];
    int bytes = snprintf(text, sizeof text, "{\"named_later\":%" PRIu64 ",\"named_by\":\"%s\"}",
                         named_now(symbolize), VS_VERSION);
    vs_append_meta(symbolize->appender, "symbols", text, (size_t)bytes);
}

/* Asks, and writes what came of it: also when the symbolizer gave up in the middle. */
static int complete_trace(struct symbolize *symbolize)
{
    struct vs_error error = {{0}};
    if (vs_append_open(symbolize->path, &symbolize->appender, &error) != 0) {
        fprintf(stderr, "vramscope: %s\n", error.text);
        return CMD_FAILED;
    }
    int naming = name_all(symbolize);
    if (symbolize->answered > 0)
        append_facts(symbolize);
    if (naming != 0)
        fprintf(stderr, "vramscope: %s: %" PRIu64 " addresses could not be asked about: %s\n",
                symbolize->path, symbolize->asked - symbolize->answered,
                symbol_client_error(naming));
    if (vs_append_close(symbolize->appender, &error) != 0) {
        fprintf(stderr, "vramscope: %s\n", error.text);
        return CMD_FAILED;
    }
    return naming == 0 ? CMD_DONE : CMD_FAILED;
}

/* ---- the result --------------------------------------------------------------------------------
 */

static uint64_t unnamed(const struct module_work *work)
{
    return work->count - work->answers[SYMBOL_FOUND];
}

static enum symbol_status main_reason(const struct module_work *work)
{
    enum symbol_status reason = SYMBOL_NOTHING_KNOWN;
    for (int status = SYMBOL_NOTHING_KNOWN; status < SYMBOL_STATUSES; status++)
        if (work->answers[status] > work->answers[reason])
            reason = (enum symbol_status)status;
    return reason;
}

static void write_build_id(const struct module_work *work, char *out)
{
    out[0] = 0;
    for (size_t i = 0; i < work->ask.build_id_bytes; i++)
        snprintf(out + 2 * i, 3, "%02x", work->ask.build_id[i]);
}

static void print_json(const struct symbolize *symbolize, uint64_t known)
{
    json_t *modules = json_array();
    for (size_t i = 0; i < symbolize->module_count; i++) {
        const struct module_work *work = &symbolize->modules[i];
        char build_id[2 * SYMBOL_BUILD_ID_BYTES + 1];
        write_build_id(work, build_id);
        json_array_append_new(
            modules,
            json_pack("{s:o, s:s, s:I, s:I, s:I, s:o}", "path",
                      privacy_json_text(work->module->path, strlen(work->module->path)), "build_id",
                      build_id, "known_before", (json_int_t)work->known, "named",
                      (json_int_t)work->answers[SYMBOL_FOUND], "unnamed", (json_int_t)unnamed(work),
                      "why",
                      unnamed(work) == 0 ? json_null()
                                         : json_string(symbol_status_text(main_reason(work)))));
    }
    json_t *root = json_pack(
        "{s:s, s:s, s:I, s:I, s:I, s:I, s:o}", "schema", "vramscope-symbolize/1", "file",
        symbolize->path, "addresses", (json_int_t)known + (json_int_t)symbolize->asked,
        "known_before", (json_int_t)known, "named", (json_int_t)named_now(symbolize), "unnamed",
        (json_int_t)symbolize->asked - (json_int_t)named_now(symbolize), "modules", modules);
    json_dumpf(root, stdout, JSON_INDENT(1));
    putchar('\n');
    json_decref(root);
}

static void print_text(const struct symbolize *symbolize, uint64_t known)
{
    uint64_t named = named_now(symbolize), left = symbolize->asked - named;
    printf("%s native addresses: %s had names, %s got one now, %s have none\n",
           page_count(known + symbolize->asked).text, page_count(known).text,
           page_count(named).text, page_count(left).text);
    if (left > 0)
        printf("\n%10s  %-30s %s\n", "without", "why", "module");
    for (size_t i = 0; i < symbolize->module_count; i++) {
        const struct module_work *work = &symbolize->modules[i];
        char build_id[2 * SYMBOL_BUILD_ID_BYTES + 1];
        if (unnamed(work) == 0)
            continue;
        enum symbol_status reason = main_reason(work);
        printf("%10s  %-30s %s", page_count(unnamed(work)).text, symbol_status_text(reason),
               work->module->path);
        write_build_id(work, build_id);
        if (build_id[0] && (reason == SYMBOL_NO_FILE || reason == SYMBOL_OTHER_BUILD))
            printf(" (build id %s)", build_id);
        putchar('\n');
    }
}

static uint64_t known_before(const struct symbolize *symbolize)
{
    uint64_t known = 0;
    for (size_t i = 0; i < symbolize->module_count; i++)
        known += symbolize->modules[i].known;
    return known;
}

static void free_all(struct symbolize *symbolize)
{
    for (size_t i = 0; i < symbolize->module_count; i++)
        free(symbolize->modules[i].addresses);
    free(symbolize->modules);
    symbol_wanted_free(&symbolize->wanted);
    vs_reader_close(symbolize->reader);
}

static int run(struct symbolize *symbolize)
{
    struct vs_error error = {{0}};
    if (vs_reader_open(symbolize->path, &symbolize->reader, &error) != 0) {
        fprintf(stderr, "vramscope: %s\n", error.text);
        return CMD_FAILED;
    }
    int got = collect_places(symbolize);
    if (got == -ENOMEM) {
        fprintf(stderr, "vramscope: %s: %s\n", symbolize->path, strerror(ENOMEM));
        return CMD_FAILED;
    }
    bool damaged = tell_damage(symbolize->path, vs_reader_status(symbolize->reader), got);
    symbolize->hide = is_private(symbolize->reader);
    int status = symbolize->asked > 0 ? complete_trace(symbolize) : CMD_DONE;
    if (symbolize->asked > 0 && symbolize->answered == 0)
        return CMD_FAILED;
    if (symbolize->json)
        print_json(symbolize, known_before(symbolize));
    else
        print_text(symbolize, known_before(symbolize));
    return finish_output(damaged ? CMD_FAILED : status);
}

int cmd_symbolize(int argc, char **argv)
{
    static struct symbolize symbolize;
    const char *folder; /* taken before */
    const struct option_rule rules[] = {{"--debug-dir DIR", NULL, &folder},
                                        {"--again", &symbolize.again, NULL},
                                        {"--json", &symbolize.json, NULL}};
    int count = take_folders(&symbolize, argc, argv);
    if (count < 0)
        return CMD_USAGE;
    int status = parse_arguments(count, argv, help, rules, 3, &symbolize.path);
    if (status >= 0)
        return status;
    status = check_folders(&symbolize);
    if (status != CMD_DONE)
        return status;
    status = run(&symbolize);
    free_all(&symbolize);
    return status;
}
