/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linked into a copy of the shim in front of its unwinder: what it found is held
 * against the compiler's own (_Unwind_Backtrace) and libunwind's cursor without its
 * cache, frame by frame, for the first VS_CHECK_STACKS stacks. A walk that was
 * recalled is made as well, and has to give the words that were remembered under its
 * sum. The figures lie in a file mapped shared, VS_CHECK_FILE
 * with the process's id behind it, so that no end of the process loses them.
 */
#define UNW_LOCAL_ONLY
#include <dlfcn.h>
#include <fcntl.h>
#include <libunwind.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <unwind.h>

#include "shim.h"
#include "stacks.h"
#include "unwind_memo.h"

#define FRAMES_MAX 1024U
#define REMEMBERED_MAX 16384U
#define TEXT_OF(name) #name
#define NAME_OF(name) TEXT_OF(name) /* libunwind's functions are macros */

struct figures {
    _Atomic uint64_t wanted, compared, frames, differ, cut, stopped, recalled, wrongly_recalled,
        by_libunwind, differ_from_libunwind;
    char first_difference[3072];
};

struct trace {
    uint64_t words[FRAMES_MAX];
    unsigned count;
};

struct remembered {
    struct unwind_known known;
    uint64_t words[STACKS_DEPTH_MAX];
};

/* Opened for itself: in front of the program it would take the compiler's place in it. */
static struct {
    int (*getcontext)(unw_context_t *);
    int (*init)(unw_cursor_t *, unw_context_t *);
    int (*step)(unw_cursor_t *);
    int (*get)(unw_cursor_t *, int, unw_word_t *);
    int (*is_signal)(unw_cursor_t *);
} libunwind;

extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

static struct figures *figures;
static __thread int checking __attribute__((tls_model("initial-exec")));

unsigned __real_unwind_here(uint64_t *words, unsigned max, enum vs_stack_note *note);
unsigned __wrap_unwind_here(uint64_t *words, unsigned max, enum vs_stack_note *note);
bool __real_unwind_recall(const struct unwind_start *start, uint64_t hint,
                          struct unwind_known *known);
bool __wrap_unwind_recall(const struct unwind_start *start, uint64_t hint,
                          struct unwind_known *known);
void __real_unwind_remember(const struct unwind_start *start, uint64_t hint, const uint64_t *words,
                            const struct unwind_known *known);
void __wrap_unwind_remember(const struct unwind_start *start, uint64_t hint, const uint64_t *words,
                            const struct unwind_known *known);

static pthread_mutex_t remembering = PTHREAD_MUTEX_INITIALIZER;
static struct remembered *remembered;
static unsigned remembered_count;

static _Unwind_Reason_Code note_frame(struct _Unwind_Context *context, void *argument)
{
    struct trace *trace = argument;
    int is_exact = 0;
    uint64_t ip = _Unwind_GetIPInfo(context, &is_exact);
    bool is_ours = ip >= (uint64_t)(uintptr_t)__ehdr_start && ip < (uint64_t)(uintptr_t)_end;
    if (ip != 0 && !is_ours && trace->count < FRAMES_MAX) {
        trace->words[trace->count++] = ip | (is_exact ? VS_FRAME_EXACT : 0);
    }
    return _URC_NO_REASON;
}

static void describe(const uint64_t *ours, unsigned count, const struct trace *theirs)
{
    size_t used = 0;
    size_t room = sizeof(figures->first_difference);
    for (unsigned i = 0; i < count || i < theirs->count; i++) {
        int length = snprintf(figures->first_difference + used, room - used, "%u: %lx %lx\n", i,
                              i < count ? (unsigned long)ours[i] : 0,
                              i < theirs->count ? (unsigned long)theirs->words[i] : 0);
        if (length < 0 || (used += (size_t)length) >= room) {
            break;
        }
    }
}

static void add_frame(struct trace *trace, uint64_t word)
{
    uint64_t ip = vs_frame_address(word);
    bool is_ours = ip >= (uint64_t)(uintptr_t)__ehdr_start && ip < (uint64_t)(uintptr_t)_end;
    if (ip != 0 && !is_ours && trace->count < FRAMES_MAX) {
        trace->words[trace->count++] = word;
    }
}

static void take_libunwind(struct trace *trace)
{
    unw_context_t context;
    unw_cursor_t cursor;
    libunwind.getcontext(&context);
    libunwind.init(&cursor, &context);
    do {
        bool exact = libunwind.is_signal(&cursor) > 0;
        unw_word_t ip = 0;
        libunwind.get(&cursor, UNW_REG_IP, &ip);
        add_frame(trace, ip | (exact ? VS_FRAME_EXACT : 0));
    } while (libunwind.step(&cursor) > 0);
}

static bool is_same(const uint64_t *words, unsigned count, enum vs_stack_note note,
                    const struct trace *theirs)
{
    bool is_part = note != VS_STACK_NOTE_NONE && theirs->count > count;
    return (is_part || theirs->count == count) &&
           memcmp(words, theirs->words, count * sizeof(*words)) == 0;
}

static void compare(const uint64_t *words, unsigned count, enum vs_stack_note note)
{
    struct trace compiler = {.count = 0};
    struct trace cursor = {.count = 0};
    _Unwind_Backtrace(note_frame, &compiler);
    figures->frames += count;
    figures->cut += note == VS_STACK_NOTE_NATIVE_CUT;
    figures->stopped += note == VS_STACK_NOTE_NATIVE_STOPPED;
    if (!is_same(words, count, note, &compiler) && figures->differ++ == 0) {
        describe(words, count, &compiler);
    }
    if (libunwind.step != NULL) {
        take_libunwind(&cursor);
        figures->by_libunwind++;
        if (!is_same(words, count, note, &cursor) && figures->differ_from_libunwind++ == 0) {
            describe(words, count, &cursor);
        }
    }
    figures->compared++;
}

static bool wanted(void)
{
    return figures != NULL && checking == 0 && figures->compared < figures->wanted;
}

unsigned __wrap_unwind_here(uint64_t *words, unsigned max, enum vs_stack_note *note)
{
    unsigned count = __real_unwind_here(words, max, note);
    if (wanted()) {
        checking = 1;
        compare(words, count, *note);
        checking = 0;
    }
    return count;
}

static bool is_alike(const struct unwind_known *a, const struct unwind_known *b)
{
    return a->sum[0] == b->sum[0] && a->sum[1] == b->sum[1] && a->count == b->count &&
           a->note == b->note;
}

static const struct remembered *find(const struct unwind_known *known)
{
    for (unsigned i = 0; i < remembered_count; i++) {
        if (is_alike(&remembered[i].known, known)) {
            return &remembered[i];
        }
    }
    return NULL;
}

/* The words are those remembered under that sum: then the sum is theirs. */
static bool is_remembered(const struct unwind_known *known, const uint64_t *words, unsigned count,
                          enum vs_stack_note note)
{
    pthread_mutex_lock(&remembering);
    const struct remembered *found = find(known);
    pthread_mutex_unlock(&remembering);
    return found != NULL && known->count == count && known->note == note &&
           memcmp(found->words, words, count * sizeof(*words)) == 0;
}

bool __wrap_unwind_recall(const struct unwind_start *start, uint64_t hint,
                          struct unwind_known *known)
{
    uint64_t words[STACKS_DEPTH_MAX];
    enum vs_stack_note note;
    bool recalled = __real_unwind_recall(start, hint, known);
    if (recalled && wanted()) {
        checking = 1;
        unsigned count = __real_unwind_here(words, shim_config.depth, &note);
        figures->recalled++;
        figures->wrongly_recalled += !is_remembered(known, words, count, note);
        compare(words, count, note);
        checking = 0;
    }
    return recalled;
}

/* Without room for its words a walk is not remembered. */
void __wrap_unwind_remember(const struct unwind_start *start, uint64_t hint, const uint64_t *words,
                            const struct unwind_known *known)
{
    if (figures == NULL) {
        __real_unwind_remember(start, hint, words, known);
        return;
    }
    pthread_mutex_lock(&remembering);
    bool kept = find(known) != NULL;
    if (!kept && remembered_count < REMEMBERED_MAX) {
        remembered[remembered_count].known = *known;
        memcpy(remembered[remembered_count++].words, words, known->count * sizeof(*words));
        kept = true;
    }
    pthread_mutex_unlock(&remembering);
    if (kept) {
        __real_unwind_remember(start, hint, words, known);
    }
}

static void open_libunwind(void)
{
    void *library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        return;
    }
    int (*set_policy)(unw_addr_space_t, unw_caching_policy_t);
    *(void **)&set_policy = dlsym(library, NAME_OF(unw_set_caching_policy));
    unw_addr_space_t *space = dlsym(library, NAME_OF(unw_local_addr_space));
    *(void **)&libunwind.getcontext = dlsym(library, NAME_OF(unw_tdep_getcontext));
    *(void **)&libunwind.init = dlsym(library, NAME_OF(unw_init_local));
    *(void **)&libunwind.get = dlsym(library, NAME_OF(unw_get_reg));
    *(void **)&libunwind.is_signal = dlsym(library, NAME_OF(unw_is_signal_frame));
    if (set_policy != NULL && space != NULL && libunwind.getcontext != NULL &&
        libunwind.init != NULL && libunwind.get != NULL && libunwind.is_signal != NULL &&
        set_policy(*space, UNW_CACHE_NONE) == 0) {
        *(void **)&libunwind.step = dlsym(library, NAME_OF(unw_step));
    }
}

__attribute__((constructor)) static void on_load(void)
{
    char path[4096];
    const char *file = getenv("VS_CHECK_FILE");
    const char *wanted = getenv("VS_CHECK_STACKS");
    if (file == NULL || wanted == NULL) {
        return;
    }
    snprintf(path, sizeof(path), "%s.%d", file, (int)getpid());
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void *mapped =
        fd >= 0 && ftruncate(fd, sizeof(struct figures)) == 0
            ? mmap(NULL, sizeof(struct figures), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
            : MAP_FAILED;
    if (fd >= 0) {
        close(fd);
    }
    if (mapped != MAP_FAILED) {
        open_libunwind();
        remembered = calloc(REMEMBERED_MAX, sizeof(*remembered));
        figures = remembered != NULL ? mapped : NULL;
    }
    if (figures != NULL) {
        figures->wanted = strtoull(wanted, NULL, 10);
    }
}
