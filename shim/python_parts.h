/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the rooms behind python_walk know of each other:
 *
 *   python.c         which interpreter, whether it can be read; the walk
 *   python_layout.c  where its fields lie
 *   python_symbols.c where its symbols are
 *   python_code.c    code objects: what tells them apart, their ids and records
 *   python_memo.c    walks that went before
 *   python_text.c    its strings as UTF-8
 *   python_lines.c   bytecode offset → line
 *   python_end.c     nobody reads while the interpreter shuts down
 *
 * Objects are addresses. What is read belongs to the calling thread's own
 * frames, which keep it alive: nothing changes meanwhile, and no lock is needed.
 */
#ifndef VS_SHIM_PYTHON_PARTS_H
#define VS_SHIM_PYTHON_PARTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "python_layout.h"
#include "stacks.h"

#define PYTHON_OFFSET_MAX (1 << 28) /* into the bytecode: beyond, it is of something else */

static inline uint64_t python_word(uint64_t object, unsigned offset)
{
    return *(const uint64_t *)(uintptr_t)(object + offset);
}

static inline uint32_t python_half(uint64_t object, unsigned offset)
{
    return *(const uint32_t *)(uintptr_t)(object + offset);
}

static inline uint8_t python_byte(uint64_t object, unsigned offset)
{
    return *(const uint8_t *)(uintptr_t)(object + offset);
}

/* ---- python_symbols.c --------------------------------------------------------- */

/* Those of one interpreter. NULL: it has none (which of them may be is said in python_symbols.c).
 */
struct python_symbols {
    const void *code_type, *text_type, *bytes_type, *runtime;
    const unsigned long *version;
    const char *(*version_text)(void);
    void *(*thread_of_gil_state)(void); /* also of a thread that gave the GIL away */
    void *(*thread_attached)(void);
    void *(*main_interpreter)(void);
    int (*is_initialized)(void);
    int (*is_finalizing)(void);
    int (*add_pending_call)(int (*call)(void *), void *argument);

    /* With the GIL held; python_end.c calls them. */
    void *(*current_interpreter)(void);
    void *(*interpreter_dictionary)(void *interpreter);
    void *(*dictionary_get)(void *dictionary, const char *key);
    int (*dictionary_set)(void *dictionary, const char *key, void *value);
    void *(*import_module)(const char *name);
    void *(*new_function)(void *method, void *self, void *module);
    void *(*call_method)(void *object, const char *name, const char *format, ...);
    void *(*build_value)(const char *format, ...);
    void (*decrement)(void *object);
    void (*clear_error)(void);
};

/* The first interpreter in the order of loading. Under the loader's list lock: not in a hook. */
bool python_symbols_find(struct python_symbols *symbols);
/* As PY_VERSION_HEX. */
uint32_t python_symbols_version(const struct python_symbols *symbols);

/* ---- python_lines.c ------------------------------------------------------------- */

/* Line of a bytecode offset, -1 being the place before the first; 0: belongs to no line. */
uint32_t python_line(const struct python_layout *layout, uint64_t code, int32_t offset);

/* ---- python_text.c -------------------------------------------------------------- */

enum python_cut { PYTHON_CUT_END, PYTHON_CUT_BEGINNING };

/*
 * A str as UTF-8, at most `capacity` bytes (more than 8), what does not fit
 * replaced by "…" at the end or at the beginning. Half a pair of surrogates
 * becomes U+FFFD. Returns the bytes written.
 */
size_t python_text(const struct python_layout *layout, uint64_t object, char *out, size_t capacity,
                   enum python_cut cut);

/* ---- python_code.c --------------------------------------------------------------- */

#define PYTHON_DEATH_SLOTS 4096U

/* Deaths of code objects that have an id, by a hash of their address (3.8–3.11). */
extern _Atomic uint32_t python_deaths[PYTHON_DEATH_SLOTS];
/*
 * False: all of them are 0. Most programs never see such a death, and the counts of
 * a stack's code objects would be a cache line each.
 */
extern _Atomic bool python_any_deaths;

static inline uint32_t python_death_slot(uint64_t code)
{
    return (uint32_t)((code >> 4) * 0x9e3779b97f4a7c15ULL >> 52);
}

static inline uint32_t python_code_deaths(uint64_t code)
{
    return atomic_load_explicit(&python_deaths[python_death_slot(code)], memory_order_relaxed);
}

/* Tells code objects apart by what their frames show: file, name, first line, line table. */
uint32_t python_code_content(const struct python_layout *layout, uint64_t code);
/* Maps the table of ids. 0 or a negative errno value. Not in a hook. */
int python_code_prepare(void);
/* From now on deaths are counted. Anywhere, any number of times. */
void python_code_watch_deaths(const struct python_layout *layout, const void *code_type);

struct python_code_text {
    struct vs_record_code head;
    uint32_t bytes; /* of `text`: name, file */
    char text[5120];
};

/* Id of a code object; 0: none yet, or that of another process. */
uint32_t python_code_find(uint64_t code, uint32_t version);
/* What its record says. */
void python_code_read(const struct python_layout *layout, uint64_t code,
                      struct python_code_text *text);
/* Sends the record; touches nothing of Python's. The new id, 0 when there was no room for it. */
uint32_t python_code_send(uint64_t code, uint32_t version, const struct python_code_text *text);

/* ---- python_end.c ---------------------------------------------------------------- */

/*
 * Between these, what the calling thread's frames hold stays. enter returns NULL
 * when the interpreter is shutting down in another thread: nothing may be read.
 */
_Atomic int32_t *python_end_enter(void);
static inline void python_end_leave(_Atomic int32_t *readers)
{
    /* Release: all that was read was read before who waits for this goes on. */
    atomic_fetch_sub_explicit(readers, 1, memory_order_release);
}

/* Before anything else here. 0 or a negative errno value. Not in a hook. */
int python_end_prepare(const struct python_symbols *symbols);
/*
 * Arranges to be told of the interpreter's end, once it has begun. Takes a
 * mutex of Python's that is never held for long, and never together with
 * another; not in a hook.
 */
void python_end_watch(void);
bool python_end_is_watched(void);
/* True from the moment the interpreter begins to shut down until another one has begun. */
bool python_end_has_come(void);
/* Counts the interpreters that this process has had before this one. */
uint32_t python_end_era(void);

#endif
