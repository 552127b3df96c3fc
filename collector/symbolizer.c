/* SPDX-License-Identifier: Apache-2.0 */
/* The collector's side of naming: see symbolizer.h. */
#include "symbolizer.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "privacy.h"
#include "symbol_client.h"
#include "symbol_wanted.h"

#define STACK_BYTES (256U * 1024U)
#define LEAST_PRIORITY 19
#define PLACES_MOST (1U << 19) /* addresses of modules: 16 MiB of them */
#define ANSWERS_MAX 8192U      /* waiting to be written: then the thread waits */
#define TOLD_MODULES_MAX 32U   /* modules without names that the facts list */
#define STOP_MS 500U

/* A module that stacks led to. Never moved or freed while the thread runs. */
struct asked_module {
    struct symbol_module ask;
    uint32_t id;
    uint64_t *pending; /* addresses to ask about, guarded by the lock */
    size_t pending_count, pending_capacity;
    uint64_t answers[SYMBOL_STATUSES]; /* guarded by the lock */
};

struct answer {
    struct answer *next;
    struct vs_symbol_def symbol; /* frames and texts follow */
};

struct symbolizer {
    struct symbol_wanted wanted; /* the collector's thread only */
    struct output *output;
    bool hide;

    pthread_mutex_t lock; /* guards everything down to the blank line */
    pthread_cond_t changed;
    struct asked_module **modules;
    size_t module_count, module_capacity;
    size_t next_module; /* they are served in turn */
    uint64_t asked;     /* addresses; what finds no memory stays unanswered */
    struct answer *answers, **answers_end;
    size_t answer_count;
    bool started, running, busy, stopping;
    int error; /* why no more is asked; 0 */

    struct symbol_client client; /* the thread's */
};

struct symbolizer *symbolizer_new(struct output *output, bool hide)
{
    static const char *const no_folders[] = {NULL};
    pthread_condattr_t attributes;
    struct symbolizer *symbolizer = calloc(1, sizeof *symbolizer);
    if (!symbolizer)
        return NULL;
    symbolizer->output = output;
    symbolizer->hide = hide;
    symbolizer->answers_end = &symbolizer->answers;
    symbol_wanted_init(&symbolizer->wanted, PLACES_MOST);
    symbol_client_init(&symbolizer->client, no_folders);
    symbolizer->client.background = true;
    pthread_mutex_init(&symbolizer->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&symbolizer->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    return symbolizer;
}

/* ---- the thread ------------------------------------------------------------------------- */

static struct answer *copy_answer(const struct asked_module *module, uint64_t address,
                                  const struct vs_symbol_frame *frames, uint32_t count)
{
    size_t text_bytes = 0;
    for (uint32_t i = 0; i < count; i++)
        text_bytes += strlen(frames[i].function) + strlen(frames[i].file) + 2;
    struct answer *answer = malloc(sizeof *answer + count * sizeof *frames + text_bytes);
    if (!answer)
        return NULL;
    struct vs_symbol_frame *copies = (struct vs_symbol_frame *)(answer + 1);
    char *text = (char *)(copies + count);
    for (uint32_t i = 0; i < count; i++) {
        copies[i].line = frames[i].line;
        copies[i].function = text;
        text = stpcpy(text, frames[i].function) + 1;
        copies[i].file = text;
        text = stpcpy(text, frames[i].file) + 1;
    }
    *answer = (struct answer){NULL, {module->id, address, count, copies}};
    return answer;
}

/* What the asking has to know of one request. */
struct request {
    struct symbolizer *symbolizer;
    struct asked_module *module;
};

/* Only what the file itself says is written: for the rest, another file may be found later. */
static void take_answer(void *context, uint64_t address, enum symbol_status status,
                        const struct vs_symbol_frame *frames, uint32_t count)
{
    const struct request *request = context;
    struct symbolizer *symbolizer = request->symbolizer;
    bool written = status == SYMBOL_FOUND || status == SYMBOL_NOTHING_KNOWN;
    struct answer *answer = written ? copy_answer(request->module, address, frames, count) : NULL;
    pthread_mutex_lock(&symbolizer->lock);
    request->module->answers[status]++;
    if (answer) {
        *symbolizer->answers_end = answer;
        symbolizer->answers_end = &answer->next;
        symbolizer->answer_count++;
        pthread_cond_broadcast(&symbolizer->changed);
    }
    while (symbolizer->answer_count >= ANSWERS_MAX && !symbolizer->stopping)
        pthread_cond_wait(&symbolizer->changed, &symbolizer->lock);
    pthread_mutex_unlock(&symbolizer->lock);
}

/* The next module in turn that has addresses to ask about; NULL none. */
static struct asked_module *next_module(struct symbolizer *symbolizer)
{
    for (size_t i = 0; i < symbolizer->module_count; i++) {
        size_t at = (symbolizer->next_module + i) % symbolizer->module_count;
        if (symbolizer->modules[at]->pending_count > 0) {
            symbolizer->next_module = at;
            return symbolizer->modules[at];
        }
    }
    return NULL;
}

static int by_value(const void *left, const void *right)
{
    const uint64_t *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

static uint32_t take_pending(struct asked_module *module, uint64_t *addresses)
{
    size_t count =
        module->pending_count < SYMBOL_ADDRESSES_MAX ? module->pending_count : SYMBOL_ADDRESSES_MAX;
    module->pending_count -= count;
    memcpy(addresses, module->pending + module->pending_count, count * sizeof *addresses);
    return (uint32_t)count;
}

/* Waits for work. NULL when it is time to stop. The lock is held before and after. */
static struct asked_module *wait_for_work(struct symbolizer *symbolizer)
{
    struct asked_module *module = NULL;
    while (!symbolizer->stopping && (module = next_module(symbolizer)) == NULL) {
        symbolizer->busy = false;
        pthread_cond_broadcast(&symbolizer->changed);
        pthread_cond_wait(&symbolizer->changed, &symbolizer->lock);
    }
    symbolizer->busy = true;
    return symbolizer->stopping ? NULL : module;
}

static void *symbolizer_main(void *argument)
{
    struct symbolizer *symbolizer = argument;
    struct request request = {symbolizer, NULL};
    uint64_t addresses[SYMBOL_ADDRESSES_MAX];
    int error = 0;
    setpriority(PRIO_PROCESS, 0, LEAST_PRIORITY); /* of this thread, as Linux has it */
    pthread_mutex_lock(&symbolizer->lock);
    while (error == 0 && (request.module = wait_for_work(symbolizer)) != NULL) {
        uint32_t count = take_pending(request.module, addresses);
        pthread_mutex_unlock(&symbolizer->lock);
        qsort(addresses, count, sizeof *addresses, by_value);
        error = symbol_client_ask(&symbolizer->client, &request.module->ask, addresses, count,
                                  take_answer, &request);
        pthread_mutex_lock(&symbolizer->lock);
    }
    symbolizer->error = error;
    pthread_mutex_unlock(&symbolizer->lock);
    symbol_client_close(&symbolizer->client);
    pthread_mutex_lock(&symbolizer->lock);
    symbolizer->running = symbolizer->busy = false;
    pthread_cond_broadcast(&symbolizer->changed);
    pthread_mutex_unlock(&symbolizer->lock);
    return NULL;
}

static void start_thread(struct symbolizer *symbolizer)
{
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    symbolizer->started = true;
    int error = pthread_create(&thread, &attributes, symbolizer_main, symbolizer);
    symbolizer->running = error == 0;
    symbolizer->error = -error;
    pthread_attr_destroy(&attributes);
}

/* ---- asking -------------------------------------------------------------------------------- */

void symbolizer_module(struct symbolizer *symbolizer, const struct vs_module_def *module)
{
    symbol_wanted_module(&symbolizer->wanted, module);
}

static struct asked_module *add_module(struct symbolizer *symbolizer,
                                       const struct vs_module_def *module)
{
    if (symbolizer->module_count == symbolizer->module_capacity) {
        size_t capacity = symbolizer->module_capacity ? symbolizer->module_capacity * 2 : 64;
        struct asked_module **grown = reallocarray(symbolizer->modules, capacity, sizeof(void *));
        if (!grown)
            return NULL;
        symbolizer->modules = grown;
        symbolizer->module_capacity = capacity;
    }
    struct asked_module *added = calloc(1, sizeof *added);
    if (!added)
        return NULL;
    added->id = module->id;
    added->ask.path = module->path; /* the definition stays */
    memcpy(added->ask.build_id, module->build_id, sizeof added->ask.build_id);
    added->ask.build_id_bytes = module->build_id_bytes;
    symbolizer->modules[symbolizer->module_count++] = added;
    return added;
}

static struct asked_module *find_module(struct symbolizer *symbolizer,
                                        const struct vs_module_def *module)
{
    for (size_t i = symbolizer->module_count; i-- > 0;)
        if (symbolizer->modules[i]->id == module->id)
            return symbolizer->modules[i];
    return add_module(symbolizer, module);
}

static bool add_pending(struct asked_module *module, uint64_t address)
{
    if (module->pending_count == module->pending_capacity) {
        size_t capacity = module->pending_capacity ? module->pending_capacity * 2 : 64;
        uint64_t *grown = reallocarray(module->pending, capacity, sizeof *grown);
        if (!grown)
            return false;
        module->pending = grown;
        module->pending_capacity = capacity;
    }
    module->pending[module->pending_count++] = address;
    return true;
}

static void want_place(void *context, const struct vs_module_def *module, uint64_t address)
{
    struct symbolizer *symbolizer = context;
    pthread_mutex_lock(&symbolizer->lock);
    struct asked_module *asked = find_module(symbolizer, module);
    symbolizer->asked++;
    bool pending = asked && symbolizer->error == 0 && add_pending(asked, address);
    if (pending && !symbolizer->started)
        start_thread(symbolizer);
    else if (pending && !symbolizer->busy)
        pthread_cond_broadcast(&symbolizer->changed);
    pthread_mutex_unlock(&symbolizer->lock);
}

void symbolizer_stack(struct symbolizer *symbolizer, const struct vs_stack_def *stack)
{
    symbol_wanted_stack(&symbolizer->wanted, stack, want_place, symbolizer);
}

/* ---- answers --------------------------------------------------------------------------------- */

/* A source file's path as it may be shown. */
static void hide_files(struct vs_symbol_def *symbol, char (*shown)[PATH_MAX])
{
    struct vs_symbol_frame *frames = (struct vs_symbol_frame *)(uintptr_t)symbol->frames;
    for (uint32_t i = 0; i < symbol->count; i++)
        if (frames[i].file[0]) {
            privacy_path(frames[i].file, shown[i], sizeof shown[i]);
            frames[i].file = shown[i];
        }
}

bool symbolizer_take(struct symbolizer *symbolizer)
{
    static char shown[SYMBOL_FRAMES_MAX][PATH_MAX];
    pthread_mutex_lock(&symbolizer->lock);
    struct answer *answer = symbolizer->answers;
    symbolizer->answers = NULL;
    symbolizer->answers_end = &symbolizer->answers;
    bool waited_for = symbolizer->answer_count >= ANSWERS_MAX;
    symbolizer->answer_count = 0;
    if (waited_for)
        pthread_cond_broadcast(&symbolizer->changed);
    pthread_mutex_unlock(&symbolizer->lock);
    bool any = answer != NULL;
    while (answer) {
        struct answer *next = answer->next;
        if (symbolizer->hide)
            hide_files(&answer->symbol, shown);
        output_symbol(symbolizer->output, &answer->symbol);
        free(answer);
        answer = next;
    }
    return any;
}

static struct timespec from_now(unsigned ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)(ms % 1000) * 1000000L;
    until.tv_sec += (time_t)(ms / 1000) + until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    return until;
}

void symbolizer_settle(struct symbolizer *symbolizer, unsigned most_ms)
{
    struct timespec until = from_now(most_ms);
    bool in_time = true, at_work = true;
    while (in_time && at_work) {
        symbolizer_take(symbolizer);
        pthread_mutex_lock(&symbolizer->lock);
        at_work = symbolizer->running && (symbolizer->busy || next_module(symbolizer) != NULL);
        if (at_work && symbolizer->answer_count < ANSWERS_MAX)
            in_time = pthread_cond_timedwait(&symbolizer->changed, &symbolizer->lock, &until) !=
                      ETIMEDOUT;
        pthread_mutex_unlock(&symbolizer->lock);
    }
    symbolizer_take(symbolizer);
}

void symbolizer_stop(struct symbolizer *symbolizer)
{
    struct timespec until = from_now(STOP_MS);
    atomic_store(&symbolizer->client.cancelled, true);
    pthread_mutex_lock(&symbolizer->lock);
    symbolizer->stopping = true;
    pthread_cond_broadcast(&symbolizer->changed);
    while (symbolizer->running)
        if (pthread_cond_timedwait(&symbolizer->changed, &symbolizer->lock, &until) == ETIMEDOUT)
            break;
    pthread_mutex_unlock(&symbolizer->lock);
}

/* ---- facts
 * --------------------------------------------------------------------------------------- */

/* The commonest reason why addresses of a module have no name; FOUND when all have. */
static enum symbol_status main_reason(const struct asked_module *module)
{
    enum symbol_status reason = SYMBOL_FOUND;
    uint64_t most = 0;
    for (int status = SYMBOL_NO_FILE; status < SYMBOL_STATUSES; status++)
        if (module->answers[status] > most) {
            most = module->answers[status];
            reason = (enum symbol_status)status;
        }
    return reason;
}

static json_t *module_json(const struct asked_module *module, bool hide)
{
    char shown[PATH_MAX];
    uint64_t unnamed = 0;
    enum symbol_status reason = main_reason(module);
    if (reason == SYMBOL_FOUND)
        return NULL;
    for (int status = SYMBOL_NO_FILE; status < SYMBOL_STATUSES; status++)
        unnamed += module->answers[status];
    if (hide)
        privacy_path(module->ask.path, shown, sizeof shown);
    else
        snprintf(shown, sizeof shown, "%s", module->ask.path);
    return json_pack("{s:o, s:s, s:I}", "path", privacy_json_text(shown, strlen(shown)), "why",
                     symbol_status_text(reason), "addresses", (json_int_t)unnamed);
}

json_t *symbolizer_json(struct symbolizer *symbolizer)
{
    uint64_t found = 0, nothing = 0, answered = 0;
    pthread_mutex_lock(&symbolizer->lock);
    json_t *modules = symbolizer->asked > 0 ? json_array() : NULL;
    for (size_t i = 0; modules && i < symbolizer->module_count; i++) {
        const struct asked_module *module = symbolizer->modules[i];
        found += module->answers[SYMBOL_FOUND];
        nothing += module->answers[SYMBOL_NOTHING_KNOWN];
        for (int status = 0; status < SYMBOL_STATUSES; status++)
            answered += module->answers[status];
        json_t *told = json_array_size(modules) < TOLD_MODULES_MAX
                           ? module_json(module, symbolizer->hide)
                           : NULL;
        if (told)
            json_array_append_new(modules, told);
    }
    uint64_t asked = symbolizer->asked;
    json_t *facts =
        !modules
            ? NULL
            : json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:o}", "state",
                        symbolizer->error ? symbol_client_error(symbolizer->error) : "ok",
                        "addresses", (json_int_t)asked, "named", (json_int_t)found, "nothing_known",
                        (json_int_t)nothing, "unanswered", (json_int_t)(asked - answered),
                        "table_full", (json_int_t)symbolizer->wanted.refused,
                        "modules_without_names", modules);
    pthread_mutex_unlock(&symbolizer->lock);
    return facts;
}
