/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nobody reads while the interpreter shuts down. At its end Python frees the
 * thread states and frames of threads that are still running (daemon threads,
 * threads of C++), under whoever is reading them without the GIL. So each reader
 * counts itself in, and an atexit function of ours closes the door and waits
 * until all are out; after that only the thread that shuts down may still look
 * at its own frames. Its callbacks registered before ours run behind the door.
 *
 * The function is registered by a pending call, which runs in the main thread
 * with the GIL: nothing here ever waits for the GIL. A reference to it in the
 * interpreter's own dictionary tells whether an interpreter has been met before.
 */
#include "python_memo.h"
#include "python_parts.h"

#include <errno.h>
#include <sys/mman.h>
#include <time.h>

#include "shim.h"
#include "sys.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

#define READER_SLOTS 64U /* threads spread over them, lest they share a cache line */
#define CACHE_LINE 64U
#define WAIT_NS 50000L
#define WAIT_ROUNDS 20000U /* a second: a reader that was jumped out of never leaves */
#define METH_NOARGS 4
#define DICTIONARY_KEY "vramscope.end"

enum end_phase {
    END_UNWATCHED, /* nobody will tell us: ask each time */
    END_WATCHED,
    END_HAS_COME
};

struct reader_slot {
    _Alignas(CACHE_LINE) _Atomic int32_t readers;
};

static struct {
    _Atomic uint32_t phase; /* enum end_phase */
    _Atomic bool posted;    /* the pending call is on its way */
    _Atomic uint32_t era;
    _Atomic(const void *) ender; /* the thread that shuts down: address of its shim_thread */
    struct reader_slot *slots;   /* wiped in a forked child: its other threads are gone */
    struct python_symbols symbols;
} end;

/* ---- readers --------------------------------------------------------------------- */

static struct reader_slot *slot_of_thread(void)
{
    uint64_t place = (uint64_t)(uintptr_t)&shim_thread >> 6;
    return &end.slots[place * 0x9e3779b97f4a7c15ULL >> 58];
}

/* Without an atexit function there is a moment between this question and the reading. */
static bool may_read(uint32_t phase)
{
    if (phase == END_HAS_COME) {
        return atomic_load(&end.ender) == &shim_thread;
    }
    return end.symbols.is_finalizing == NULL || !end.symbols.is_finalizing() ||
           sys_gettid() == sys_getpid();
}

_Atomic int32_t *python_end_enter(void)
{
    _Atomic int32_t *readers = &slot_of_thread()->readers;
    /* Either the ender sees us in, or we see the phase: both are sequentially consistent. */
    atomic_fetch_add(readers, 1);
    uint32_t phase = atomic_load(&end.phase);
    if (__builtin_expect(phase == END_WATCHED, 1) || may_read(phase)) {
        return readers;
    }
    python_end_leave(readers);
    return NULL;
}

static bool anybody_reads(void)
{
    for (unsigned i = 0; i < READER_SLOTS; i++) {
        /* Acquire: pairs with python_end_leave. */
        if (atomic_load_explicit(&end.slots[i].readers, memory_order_acquire) > 0) {
            return true;
        }
    }
    return false;
}

int python_end_prepare(const struct python_symbols *symbols)
{
    size_t bytes = READER_SLOTS * sizeof(struct reader_slot);
    end.symbols = *symbols;
    if (end.slots != NULL) {
        return 0;
    }
    void *slots = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (slots == MAP_FAILED) {
        return -errno;
    }
    if (madvise(slots, bytes, MADV_WIPEONFORK) != 0) {
        int status = -errno;
        munmap(slots, bytes);
        return status;
    }
    end.slots = slots;
    return 0;
}

/* ---- called by Python, with the GIL -------------------------------------------------- */

static void *on_end(void *self, void *arguments)
{
    const struct timespec pause = {.tv_nsec = WAIT_NS};
    (void)self;
    (void)arguments;
    atomic_store(&end.ender, &shim_thread);
    atomic_store(&end.phase, END_HAS_COME);
    python_memo_begin_age();
    for (unsigned round = 0; anybody_reads() && round < WAIT_ROUNDS; round++) {
        sys_call2(SYS_nanosleep, &pause, 0);
    }
    return end.symbols.build_value("");
}

/* PyMethodDef. The function objects point to it for as long as they live. */
static struct {
    const char *name;
    void *(*function)(void *self, void *arguments);
    int flags;
    const char *doc;
} end_method = {"vramscope_end", on_end, METH_NOARGS, NULL};

static bool register_at_exit(void *dictionary)
{
    const struct python_symbols *python = &end.symbols;
    void *function = python->new_function(&end_method, NULL, NULL);
    void *atexit = python->import_module("atexit");
    void *result = function != NULL && atexit != NULL
                       ? python->call_method(atexit, "register", "O", function)
                       : NULL;
    bool done = result != NULL && python->dictionary_set(dictionary, DICTIONARY_KEY, function) == 0;
    python->decrement(result);
    python->decrement(atexit);
    python->decrement(function);
    if (!done) {
        python->clear_error();
    }
    return done;
}

/* Pending calls may run in the thread of a sub-interpreter: that one's end is not meant. */
static int on_pending_call(void *argument)
{
    const struct python_symbols *python = &end.symbols;
    void *interpreter = python->current_interpreter();
    (void)argument;
    atomic_store(&end.posted, false);
    if (interpreter == NULL || interpreter != python->main_interpreter()) {
        return 0;
    }
    void *dictionary = python->interpreter_dictionary(interpreter);
    if (dictionary != NULL && python->dictionary_get(dictionary, DICTIONARY_KEY) == NULL &&
        register_at_exit(dictionary)) {
        if (atomic_load(&end.phase) == END_HAS_COME) {
            atomic_fetch_add(&end.era, 1);
            python_memo_begin_age();
        }
        atomic_store(&end.phase, END_WATCHED);
    }
    return 0;
}

/* ---- for the other rooms --------------------------------------------------------------- */

static bool can_watch(void)
{
    const struct python_symbols *symbols = &end.symbols;
    return symbols->is_initialized != NULL && symbols->is_finalizing != NULL &&
           symbols->add_pending_call != NULL && symbols->current_interpreter != NULL &&
           symbols->main_interpreter != NULL && symbols->interpreter_dictionary != NULL &&
           symbols->dictionary_get != NULL && symbols->dictionary_set != NULL &&
           symbols->import_module != NULL && symbols->new_function != NULL &&
           symbols->call_method != NULL && symbols->build_value != NULL &&
           symbols->decrement != NULL && symbols->clear_error != NULL;
}

void python_end_watch(void)
{
    const struct python_symbols *python = &end.symbols;
    if (!python_end_is_watched() && can_watch() && python->is_initialized() != 0 &&
        python->is_finalizing() == 0 && !atomic_exchange(&end.posted, true) &&
        python->add_pending_call(on_pending_call, NULL) != 0) {
        atomic_store(&end.posted, false);
    }
}

bool python_end_is_watched(void)
{
    return atomic_load_explicit(&end.phase, memory_order_relaxed) == END_WATCHED;
}

bool python_end_has_come(void)
{
    return atomic_load_explicit(&end.phase, memory_order_relaxed) == END_HAS_COME;
}

uint32_t python_end_era(void)
{
    return atomic_load_explicit(&end.era, memory_order_relaxed);
}
