/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shim's Python rooms as a library that a Python program loads by ctypes, to
 * compare what they read with its own view. The ring behind them is a list in
 * memory; in place of the shim's table of stacks there is one that keeps the raw
 * frames, so that a stale identity of a code object shows as a wrong stack.
 */
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "lifecycle.h"
#include "python_memo.h"
#include "python_parts.h"
#include "shim.h"

#define FRAMES_MAX 4096U
#define NATIVE_MAX 8192
#define CODES_MAX (1U << 20)
#define ARENA_BYTES (1ULL << 30)
#define MEMO_SLOTS (1U << 20)
#define RANGES_MAX 8U
#define NUMBERS_BYTES 64U

/* ---- the rest of the shim, as far as these rooms see it ------------------------- */

struct shim_config shim_config = {.want_python = true};
SHIM_TLS struct shim_thread shim_thread;
static struct vs_ring_header ring;
struct vs_ring_header *lifecycle_ring = &ring;
static char last_message[256];

struct code_text {
    struct vs_record_code head;
    uint32_t bytes;
    char text[];
};

static struct {
    struct code_text *_Atomic codes[CODES_MAX];
    char *arena;
    _Atomic uint64_t arena_used;
    _Atomic uint64_t records;
    _Atomic bool full; /* the ring has no room */
} trace;

bool shim_recording(void)
{
    return true;
}

void shim_log(int level, const char *format, ...)
{
    va_list arguments;
    (void)level;
    va_start(arguments, format);
    vsnprintf(last_message, sizeof(last_message), format, arguments);
    va_end(arguments);
}

static void *keep(size_t bytes)
{
    uint64_t at = atomic_fetch_add(&trace.arena_used, (bytes + 15U) & ~15ULL);
    return at + bytes <= ARENA_BYTES ? trace.arena + at : NULL;
}

bool shim_emit_definition(uint8_t type, uint32_t id, uint32_t aux, const void *payload,
                          uint32_t bytes, const void *more, uint32_t more_bytes)
{
    (void)aux;
    if (atomic_load(&trace.full) || type != VS_RECORD_CODE || id >= CODES_MAX ||
        sizeof(struct vs_record_head) + bytes + more_bytes >
            VS_CELL_FIRST_BODY + (VS_RECORD_MAX_CELLS - 1) * VS_CELL_NEXT_BODY) {
        return false;
    }
    struct code_text *code = keep(sizeof(*code) + more_bytes);
    memcpy(&code->head, payload, bytes);
    memcpy(code->text, more, more_bytes);
    code->bytes = more_bytes;
    atomic_store(&trace.codes[id], code);
    atomic_fetch_add(&trace.records, 1);
    return true;
}

static const char *broken; /* FRAMES_BREAK, or what frames_break was told */

__attribute__((constructor)) static void on_load(void)
{
    broken = getenv("FRAMES_BREAK") != NULL ? getenv("FRAMES_BREAK") : "";
    trace.arena = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

/* ---- breaking one rule, to see that the comparison notices ------------------------- */

int __real_python_layout_choose(uint32_t version, const void *runtime,
                                struct python_layout *layout);
int __wrap_python_layout_choose(uint32_t version, const void *runtime,
                                struct python_layout *layout);
void __real_python_code_watch_deaths(const struct python_layout *layout, const void *code_type);
void __wrap_python_code_watch_deaths(const struct python_layout *layout, const void *code_type);
uint32_t __real_python_symbols_version(const struct python_symbols *symbols);
uint32_t __wrap_python_symbols_version(const struct python_symbols *symbols);
void __real_python_end_watch(void);
void __wrap_python_end_watch(void);

static struct python_layout *layout;

int __wrap_python_layout_choose(uint32_t version, const void *runtime, struct python_layout *out)
{
    layout = out;
    return __real_python_layout_choose(version, runtime, out);
}

/* FRAMES_VERSION: the interpreter says it is another one. */
uint32_t __wrap_python_symbols_version(const struct python_symbols *symbols)
{
    const char *pretended = getenv("FRAMES_VERSION");
    return pretended != NULL ? (uint32_t)strtoul(pretended, NULL, 16)
                             : __real_python_symbols_version(symbols);
}

void __wrap_python_code_watch_deaths(const struct python_layout *row, const void *code_type)
{
    if (strcmp(broken, "identity") != 0) {
        __real_python_code_watch_deaths(row, code_type);
    }
}

void __wrap_python_end_watch(void)
{
    if (strcmp(broken, "end") != 0) {
        __real_python_end_watch();
    }
}

static void break_offsets(void)
{
    if (layout->chain == PYTHON_CHAIN_OBJECTS) {
        layout->unit_shift ^= 1; /* f_lasti taken for the other kind of number */
    } else {
        layout->code_bytes = (uint16_t)(layout->code_bytes - 16);
    }
}

static void break_shims(void)
{
    layout->frame_owner = (uint16_t)(layout->frame_ip + 7); /* the top byte of an address: 0 */
}

/* Where the rule is the layout's it is broken once the layout has been proved. */
SHIM_EXPORT void frames_break(const char *rule)
{
    broken = rule;
    if (layout == NULL) {
        return;
    }
    if (strcmp(rule, "offsets") == 0) {
        break_offsets();
    } else if (strcmp(rule, "shims") == 0) {
        break_shims();
    } else if (strcmp(rule, "constructor") == 0) {
        layout->code_name = layout->code_lines;
    } else if (strcmp(rule, "texts") == 0) {
        layout->text_compact = (uint16_t)(layout->text_compact - 8);
    } else if (strcmp(rule, "entry") == 0 && layout->chain == PYTHON_CHAIN_LINKED) {
        layout->frame_entry = layout->frame_owner;
    } else if (strcmp(rule, "identity") == 0 && layout->code_version != 0) {
        layout->code_version = layout->code_first_line;
    }
}

/* ---- the table of stacks ------------------------------------------------------------ */

struct memo {
    struct memo *next;
    uint64_t hash;
    uint32_t count;
    struct python_frame *raw;
    uint64_t *words;
};

static struct {
    pthread_mutex_t mutex;
    struct memo *slots[MEMO_SLOTS];
    uint64_t hits, misses;
} memos = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static uint64_t hash_of(const struct python_frame *raw, unsigned count)
{
    uint64_t hash = count;
    for (unsigned i = 0; i < count; i++) {
        hash = (hash ^ raw[i].code) * 0x9e3779b97f4a7c15ULL;
        hash ^= hash >> 29 ^ raw[i].version ^ (uint64_t)raw[i].entry << 63;
        hash = (hash ^ (uint32_t)raw[i].offset) * 0xd6e8feb86659fd93ULL;
        hash ^= hash >> 32;
    }
    return hash;
}

static bool same(const struct memo *memo, const struct python_frame *raw, unsigned count)
{
    if (memo->count != count) {
        return false;
    }
    for (unsigned i = 0; i < count; i++) {
        const struct python_frame *other = &memo->raw[i];
        if (raw[i].code != other->code || raw[i].version != other->version ||
            raw[i].offset != other->offset || raw[i].entry != other->entry) {
            return false;
        }
    }
    return true;
}

static const struct memo *find_memo(uint64_t hash, const struct python_frame *raw, unsigned count)
{
    const struct memo *memo = memos.slots[hash % MEMO_SLOTS];
    while (memo != NULL && (memo->hash != hash || !same(memo, raw, count))) {
        memo = memo->next;
    }
    return memo;
}

static const struct memo *add_memo(uint64_t hash, const struct python_frame *raw, unsigned count,
                                   const uint64_t *words)
{
    struct memo *memo = keep(sizeof(*memo));
    memo->hash = hash;
    memo->count = count;
    memo->raw = keep(count * sizeof(*raw));
    memo->words = keep(count * sizeof(*words));
    memcpy(memo->raw, raw, count * sizeof(*raw));
    memcpy(memo->words, words, count * sizeof(*words));
    memo->next = memos.slots[hash % MEMO_SLOTS];
    memos.slots[hash % MEMO_SLOTS] = memo;
    return memo;
}

/* The words of a stack that was seen before, or what python_describe says now; NULL if nothing. */
static const struct memo *resolve(const struct python_frame *raw, unsigned count)
{
    uint64_t words[FRAMES_MAX];
    uint64_t hash = hash_of(raw, count);
    pthread_mutex_lock(&memos.mutex);
    const struct memo *memo = find_memo(hash, raw, count);
    memos.hits += memo != NULL;
    memos.misses += memo == NULL;
    if (memo == NULL && python_describe(raw, count, words) == (int)count) {
        memo = add_memo(hash, raw, count, words);
    }
    pthread_mutex_unlock(&memos.mutex);
    return memo;
}

/* ---- walks that are remembered ------------------------------------------------------- */

static _Atomic uint64_t walks_recalled, walks_different;

/* All that is told of a walk, its sum one over every frame. */
static struct python_known known_of(const struct python_frame *raw, unsigned count,
                                    enum vs_stack_note note)
{
    return (struct python_known){
        .sum = {hash_of(raw, count), ~hash_of(raw, count)}, .count = count, .note = note};
}

static bool tells(const struct python_known *known, const struct python_frame *raw, unsigned count,
                  enum vs_stack_note note)
{
    const struct python_known made = known_of(raw, count, note);
    return known->count == count && known->note == note &&
           (count == 0 || memcmp(known->sum, made.sum, sizeof(made.sum)) == 0);
}

/*
 * The walk, made whether it is recalled or not: then it has to be the one recalled,
 * unless the age of memos or the interpreter ended in between.
 */
static unsigned walk(struct python_frame *raw, unsigned max, enum vs_stack_note *note,
                     struct python_known *known, bool *recalled)
{
    uint64_t age = atomic_load(&python_memo_age);
    *recalled = max == FRAMES_MAX && python_recall(known);
    unsigned count = python_walk(raw, max, note);
    if (*recalled && *note != VS_STACK_NOTE_PYTHON_FINALIZING &&
        age == atomic_load(&python_memo_age)) {
        walks_recalled++;
        walks_different += !tells(known, raw, count, *note);
    }
    return count;
}

static void remember(struct python_known *known, const struct python_frame *raw, unsigned count,
                     enum vs_stack_note note)
{
    const struct python_known made = known_of(raw, count, note);
    known->count = count;
    known->note = note;
    memcpy(known->sum, made.sum, sizeof(made.sum));
    python_remember(known);
}

/* ---- one capture ---------------------------------------------------------------------- */

/* What one capture saw. Code that interrupts the caller captures into another. */
struct result {
    uint64_t bytes;
    int32_t note;
    int32_t native;  /* calls of the interpreter loop on the native stack */
    int32_t entries; /* frames said to be a call's outermost */
    int32_t frames;  /* -1: could not be described */
    int32_t places;  /* calls of the loop as python_loops tells them, in order up the stack */
    uint64_t room;
    char *text; /* name US file US line US entry US entering RS, frame after frame */
};

static struct {
    uint64_t start, end;
} loops[RANGES_MAX];
static unsigned loop_count;

/* Where the interpreter loop lies in memory, its parts apart. */
SHIM_EXPORT void frames_loop(uint64_t start, uint64_t end)
{
    if (loop_count < RANGES_MAX) {
        loops[loop_count].start = start;
        loops[loop_count++].end = end;
    }
}

static bool in_loop(uint64_t address)
{
    for (unsigned i = 0; i < loop_count; i++) {
        if (address >= loops[i].start && address < loops[i].end) {
            return true;
        }
    }
    return false;
}

static int native_loops(void)
{
    void *addresses[NATIVE_MAX];
    int found = 0;
    int count = loop_count != 0 ? backtrace(addresses, NATIVE_MAX) : 0;
    for (int i = 0; i < count; i++) {
        found += in_loop((uint64_t)(uintptr_t)addresses[i] - 1);
    }
    return found;
}

static int places_of_loops(void)
{
    uint64_t places[FRAMES_MAX];
    uint64_t above = (uint64_t)(uintptr_t)__builtin_frame_address(0);
    unsigned count = python_loops(places, FRAMES_MAX);
    unsigned sound = 0;
    while (sound < count && places[sound] > above) {
        above = places[sound++];
    }
    return sound == count ? (int)count : -1;
}

/*
 * Before the first instruction at which CPython itself shows a frame. It has one from 3.11 on, but
 * only in 3.11 does a collection, and so anything else, run before it.
 */
static bool is_entering(const struct python_frame *frame)
{
    return layout->chain == PYTHON_CHAIN_LINKED &&
           frame->offset < (int32_t)python_half(frame->code, layout->code_bytes - 16U) * 2;
}

static void append(struct result *result, const void *bytes, size_t count)
{
    if (result->bytes + count > result->room) {
        result->room = (result->bytes + count) * 2;
        result->text = realloc(result->text, result->room);
    }
    memcpy(result->text + result->bytes, bytes, count);
    result->bytes += count;
}

static void append_frame(struct result *result, const struct python_frame *raw, uint64_t word)
{
    char numbers[NUMBERS_BYTES];
    const struct code_text *code = atomic_load(&trace.codes[vs_frame_code(word)]);
    int bytes = snprintf(numbers, sizeof(numbers), "\x1f%u\x1f%d\x1f%d\x1e", vs_frame_line(word),
                         (word & VS_FRAME_ENTRY) != 0, is_entering(raw));
    append(result, code->text, code->head.name_bytes);
    append(result, "\x1f", 1);
    append(result, code->text + code->head.name_bytes, code->bytes - code->head.name_bytes);
    append(result, numbers, (size_t)bytes);
    result->entries += (word & VS_FRAME_ENTRY) != 0;
}

/* Captures at most `max` frames of the caller. The result is the caller's to release. */
SHIM_EXPORT struct result *frames_capture_at_most(unsigned max)
{
    struct python_frame raw[FRAMES_MAX];
    enum vs_stack_note note;
    struct python_known known;
    bool recalled;
    unsigned count = walk(raw, max < FRAMES_MAX ? max : FRAMES_MAX, &note, &known, &recalled);
    int places = places_of_loops();
    const struct memo *memo = resolve(raw, count);
    if (memo != NULL && !recalled && max >= FRAMES_MAX) {
        remember(&known, raw, count, note); /* its code objects have ids */
    }
    struct result *result = calloc(1, sizeof(*result));
    result->note = (int32_t)note;
    result->native = native_loops();
    result->places = places;
    result->frames = memo != NULL ? (int32_t)count : -1;
    for (unsigned i = 0; memo != NULL && i < count; i++) {
        append_frame(result, &raw[i], memo->words[i]);
    }
    return result;
}

SHIM_EXPORT struct result *frames_capture(void)
{
    return frames_capture_at_most(FRAMES_MAX);
}

/* Frames of the caller, and what is noted of them. */
SHIM_EXPORT int frames_count_here(int *note)
{
    struct python_frame raw[FRAMES_MAX];
    enum vs_stack_note said;
    unsigned count = python_walk(raw, FRAMES_MAX, &said);
    *note = (int)said;
    return (int)count;
}

SHIM_EXPORT void frames_release(struct result *result)
{
    free(result->text);
    free(result);
}

/* ---- the rooms themselves -------------------------------------------------------------- */

SHIM_EXPORT void frames_prepare(void)
{
    python_prepare();
}

SHIM_EXPORT int frames_state(void)
{
    return (int)python_state();
}

SHIM_EXPORT int frames_header_state(void)
{
    return (int)atomic_load(&ring.python_state);
}

SHIM_EXPORT uint32_t frames_version(void)
{
    return atomic_load(&ring.python_version);
}

SHIM_EXPORT int frames_is_missing(void)
{
    return python_is_missing();
}

SHIM_EXPORT int frames_is_watched(void)
{
    return python_end_is_watched();
}

SHIM_EXPORT const char *frames_message(void)
{
    return last_message;
}

SHIM_EXPORT uint64_t frames_records(void)
{
    return atomic_load(&trace.records);
}

/* As if no stack had been seen yet. */
SHIM_EXPORT void frames_forget(void)
{
    memset(memos.slots, 0, sizeof(memos.slots));
}

SHIM_EXPORT uint64_t frames_hits(void)
{
    return memos.hits;
}

/* Walks recalled, and those of them that were not the ones made. */
SHIM_EXPORT uint64_t frames_recalled(void)
{
    return walks_recalled;
}

SHIM_EXPORT uint64_t frames_different(void)
{
    return walks_different;
}

SHIM_EXPORT void frames_ring_is_full(int full)
{
    atomic_store(&trace.full, full != 0);
}

/* Line that the shim's decoder finds at an offset of a code object. */
SHIM_EXPORT uint32_t frames_line(uint64_t code, int32_t offset)
{
    return python_line(layout, code, offset);
}

/* ---- threads of other kinds ------------------------------------------------------------ */

static void *thread_main(void *argument)
{
    struct python_frame raw[4];
    enum vs_stack_note note;
    if (argument == NULL) {
        python_walk(raw, 4, &note);
        return (void *)(uintptr_t)note;
    }
    int (*ensure)(void);
    void *(*save)(void);
    void (*restore)(void *);
    void (*release)(int);
    *(void **)&ensure = dlsym(RTLD_DEFAULT, "PyGILState_Ensure");
    *(void **)&save = dlsym(RTLD_DEFAULT, "PyEval_SaveThread");
    *(void **)&restore = dlsym(RTLD_DEFAULT, "PyEval_RestoreThread");
    *(void **)&release = dlsym(RTLD_DEFAULT, "PyGILState_Release");
    int state = ensure();
    void *saved = save();
    python_walk(raw, 4, &note);
    restore(saved);
    release(state);
    return (void *)(uintptr_t)note;
}

/* What is noted in a new thread, which Python knows or not, and which runs no Python code. */
SHIM_EXPORT int frames_note_of_thread(int knows_python)
{
    pthread_t thread;
    void *note = NULL;
    if (pthread_create(&thread, NULL, thread_main, knows_python ? &ring : NULL) != 0) {
        return -1;
    }
    pthread_join(thread, &note);
    return (int)(uintptr_t)note;
}

/* ---- load ------------------------------------------------------------------------------- */

/* Captures without end, and without the GIL. */
SHIM_EXPORT void frames_hammer(void)
{
    struct python_frame raw[128];
    uint64_t words[128];
    enum vs_stack_note note;
    for (unsigned round = 0;; round++) {
        unsigned count = python_walk(raw, 128, &note);
        if (round % 16 == 0) {
            python_describe(raw, count, words);
        }
    }
}

/* Nanoseconds of one walk of the caller's stack, the best of `rounds` times `times` of them. */
SHIM_EXPORT double frames_cost(unsigned rounds, unsigned times, unsigned max)
{
    struct python_frame raw[FRAMES_MAX];
    enum vs_stack_note note;
    double best = 1e18;
    for (unsigned round = 0; round < rounds; round++) {
        struct timespec begin;
        struct timespec end;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        for (unsigned i = 0; i < times; i++) {
            python_walk(raw, max, &note);
        }
        clock_gettime(CLOCK_MONOTONIC, &end);
        double ns =
            (double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec);
        best = ns / times < best ? ns / times : best;
    }
    return best;
}
