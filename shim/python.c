/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Python frames of the calling thread, read where they lie: no GIL, no lock, no
 * reference, no call into the interpreter but for the thread's own state. Only
 * this thread writes its chain of frames, and it is here now.
 *
 * Whether the layout that belongs to the version is the one at hand is proved by
 * the first frames met, each address tried before it is read; an interpreter
 * that was built otherwise is left alone from then on.
 */
#include <errno.h>
#include <link.h>

#include "lifecycle.h"
#include "python_memo.h"
#include "python_parts.h"
#include "shim.h"
#include "sys.h"

#define PROVED_FRAMES_MAX 32U
#define LINE_MAX (1 << 28)
#define ERA_STEP 0x9e3779b1U /* odd and large: version numbers begin anew with each interpreter */
#define NO_SUCH_HOW 99       /* sigprocmask reads its set first, then refuses this */

enum state {
    STATE_NONE,  /* no interpreter, as far as is known */
    STATE_FOUND, /* to be proved by the first frames */
    STATE_READY,
    STATE_UNSUPPORTED
};

static struct {
    _Atomic uint32_t state; /* enum state */
    uint32_t version;       /* as PY_VERSION_HEX */
    struct python_layout layout;
    struct python_symbols symbols;
    _Atomic bool preparing;
    _Atomic bool warned;
    unsigned long long adds, subs; /* the loader's counters at the last look */
} python;

/* ---- one frame ------------------------------------------------------------------- */

static inline uint64_t first_frame(uint64_t thread)
{
    uint64_t top = python_word(thread, python.layout.thread_top);
    return python.layout.top_is_indirect && top != 0
               ? python_word(top, python.layout.cframe_current)
               : top;
}

static inline uint64_t code_of(const struct python_layout *layout, uint64_t frame)
{
    return python_word(frame, layout->frame_code) & ~(uint64_t)layout->reference_tag;
}

/*
 * Free-threaded builds from 3.14 on: the thread may run a copy of the bytecode.
 * The array of copies is replaced when it grows, perhaps now: what was read from
 * it counts only if it is still there afterwards.
 */
__attribute__((noinline)) static uint64_t bytecode_of_thread(uint64_t frame, uint64_t code)
{
    uint64_t place = code + python.layout.code_tlbc;
    uint32_t index = python_half(frame, python.layout.frame_tlbc);
    uint64_t array = __atomic_load_n((const uint64_t *)(uintptr_t)place, __ATOMIC_ACQUIRE);
    if (index == 0 || array == 0 || index >= python_word(array, 0)) {
        return code + python.layout.code_bytes;
    }
    uint64_t bytecode = python_word(array, sizeof(uint64_t) * (1 + index));
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return __atomic_load_n((const uint64_t *)(uintptr_t)place, __ATOMIC_RELAXED) == array ? bytecode
                                                                                          : 0;
}

/* 3.8–3.10. */
static inline int32_t offset_in_object(const struct python_layout *layout, uint64_t frame)
{
    int32_t last = (int32_t)python_half(frame, layout->frame_ip);
    return last < 0 ? -1 : last << layout->unit_shift;
}

/* 3.11 on. */
static inline int32_t offset_of(const struct python_layout *layout, uint64_t frame, uint64_t code)
{
    uint64_t bytecode = code + layout->code_bytes;
    if (__builtin_expect(layout->frame_tlbc != 0, 0)) {
        bytecode = bytecode_of_thread(frame, code);
    }
    uint64_t offset = python_word(frame, layout->frame_ip) - bytecode;
    return offset < PYTHON_OFFSET_MAX ? (int32_t)offset : -1;
}

/* The static code object that runs behind a class call's __init__ (3.13 on): nobody's frame. */
static bool is_constructor_shim(uint64_t code)
{
    uint64_t file = python_word(code, python.layout.code_file);
    return python_half(code, python.layout.code_version) == 0 &&
           file == python_word(code, python.layout.code_name) &&
           file == python_word(code, python.layout.code_qualname);
}

/* ---- proof ------------------------------------------------------------------------ */

static bool can_read(uint64_t address)
{
    return address != 0 && address % sizeof(uint64_t) == 0 &&
           sys_call4(SYS_rt_sigprocmask, NO_SUCH_HOW, address, 0, sizeof(uint64_t)) != -EFAULT;
}

static bool is_object(uint64_t object, unsigned bytes, const void *type)
{
    return can_read(object) && can_read((object + bytes) & ~(uint64_t)7) &&
           python_word(object, python.layout.object_type) == (uint64_t)(uintptr_t)type;
}

static int64_t bytes_size(uint64_t object)
{
    return is_object(object, python.layout.bytes_data, python.symbols.bytes_type)
               ? (int64_t)python_word(object, python.layout.bytes_size)
               : -1;
}

static int64_t bytecode_size(uint64_t code)
{
    const struct python_layout *layout = &python.layout;
    return layout->chain == PYTHON_CHAIN_OBJECTS
               ? bytes_size(python_word(code, layout->code_bytes))
               : (int64_t)python_word(code, layout->bytes_size) * 2; /* counts units of two bytes */
}

static bool offset_is_sound(uint64_t frame, uint64_t code)
{
    int32_t offset = python.layout.chain == PYTHON_CHAIN_OBJECTS
                         ? offset_in_object(&python.layout, frame)
                         : offset_of(&python.layout, frame, code);
    return offset < bytecode_size(code);
}

static bool is_code(uint64_t code)
{
    const struct python_layout *layout = &python.layout;
    if (!is_object(code, layout->code_bytes, python.symbols.code_type)) {
        return false;
    }
    int64_t lines = bytes_size(python_word(code, layout->code_lines));
    int32_t first_line = (int32_t)python_half(code, layout->code_first_line);
    return lines >= 0 && lines < PYTHON_OFFSET_MAX && first_line >= 0 && first_line < LINE_MAX &&
           is_object(python_word(code, layout->code_name), layout->text_compact,
                     python.symbols.text_type) &&
           (layout->code_qualname == 0 ||
            is_object(python_word(code, layout->code_qualname), layout->text_compact,
                      python.symbols.text_type));
}

static bool is_frame(uint64_t frame)
{
    const struct python_layout *layout = &python.layout;
    unsigned last = layout->frame_ip > layout->frame_owner ? layout->frame_ip : layout->frame_owner;
    return can_read(frame) && can_read((frame + last) & ~(uint64_t)7);
}

static bool runs_code(uint64_t frame)
{
    return python.layout.chain != PYTHON_CHAIN_SHIMMED ||
           python_byte(frame, python.layout.frame_owner) < PYTHON_OWNER_NO_FRAME;
}

static uint64_t top_that_can_be_read(uint64_t thread, bool *sound)
{
    uint64_t place = thread + python.layout.thread_top;
    *sound = can_read(thread) && can_read(place);
    if (*sound && python.layout.top_is_indirect) {
        uint64_t holder = python_word(place, 0);
        *sound = holder == 0 || can_read(holder + python.layout.cframe_current);
    }
    return *sound ? first_frame(thread) : 0;
}

/* The state that the thread's frames speak for; FOUND when there are none to tell by. */
static enum state proved_by(uint64_t thread)
{
    const struct python_layout *layout = &python.layout;
    bool sound;
    unsigned proved = 0;
    uint64_t frame = top_that_can_be_read(thread, &sound);
    for (unsigned i = 0; sound && frame != 0 && i < PROVED_FRAMES_MAX; i++) {
        sound = is_frame(frame);
        if (sound && runs_code(frame)) {
            uint64_t code = code_of(layout, frame);
            sound = is_code(code) && offset_is_sound(frame, code);
            proved++;
        }
        frame = sound ? python_word(frame, python.layout.frame_previous) : 0;
    }
    if (!sound) {
        return STATE_UNSUPPORTED;
    }
    return proved > 0 ? STATE_READY : STATE_FOUND;
}

/* False when nothing may be read. */
static bool prove(uint64_t thread)
{
    uint32_t found = STATE_FOUND;
    enum state proved = proved_by(thread);
    if (proved == STATE_READY && python.layout.code_version == 0) {
        python_code_watch_deaths(&python.layout, python.symbols.code_type);
    }
    atomic_compare_exchange_strong(&python.state, &found, proved);
    return proved != STATE_UNSUPPORTED;
}

/* ---- walks -------------------------------------------------------------------------- */

struct walk {
    struct python_frame *frames;
    unsigned max;
    enum vs_stack_note note;
};

#define OPCODE_YIELD_FROM 72    /* 3.8–3.10 */
#define OPCODE_YIELD_VALUE 86   /* 3.11 */
#define OPCODE_RESUME 151       /* 3.11 */
#define OPCODE_RESUME_QUICK 150 /* 3.11 */
#define RESUME_IN_YIELD_FROM 2  /* and above: in an await */

/*
 * Up to 3.11, throw() and close() reach the innermost generator by way of those
 * that wait for it: these are in the chain, but no call of the interpreter loop
 * runs them. They rest before the instruction that waits.
 * (In 3.11 what follows an instruction may be a cache that looks like anything.)
 */
__attribute__((noinline)) static bool is_thrown_through(uint64_t code, int32_t offset)
{
    const struct python_layout *layout = &python.layout;
    if (offset < 0) {
        return false;
    }
    if (layout->chain == PYTHON_CHAIN_OBJECTS) {
        uint64_t bytes = python_word(code, layout->code_bytes);
        return (uint64_t)offset + 2 < python_word(bytes, layout->bytes_size) &&
               python_byte(bytes + (uint64_t)offset + 2, layout->bytes_data) == OPCODE_YIELD_FROM;
    }
    uint64_t last = code + layout->code_bytes + (uint64_t)offset;
    uint8_t next = python_byte(last, 2);
    return python_byte(last, 0) == OPCODE_YIELD_VALUE &&
           (next == OPCODE_RESUME || next == OPCODE_RESUME_QUICK) &&
           python_byte(last, 3) >= RESUME_IN_YIELD_FROM;
}

/*
 * Three loops, one a chain. Each copies the layout, which so stays in registers
 * whatever is stored meanwhile, and stores its fields one by one.
 */

/* 3.8–3.10: each frame has a call of the interpreter loop to itself, if any. */
static unsigned walk_objects(uint64_t thread, struct walk *walk)
{
    const struct python_layout layout = python.layout;
    const bool deaths = atomic_load_explicit(&python_any_deaths, memory_order_relaxed);
    struct python_frame *out = walk->frames;
    struct python_frame *const end = out + walk->max;
    uint64_t frame = first_frame(thread);
    for (; frame != 0 && out < end; out++) {
        uint64_t code = code_of(&layout, frame);
        int32_t offset = offset_in_object(&layout, frame);
        out->code = code;
        out->version = deaths ? python_code_deaths(code) : 0;
        out->offset = offset;
        out->entry =
            python_word(frame, layout.frame_generator) == 0 || !is_thrown_through(code, offset);
        frame = python_word(frame, layout.frame_previous);
    }
    walk->note = frame != 0 ? VS_STACK_NOTE_PYTHON_CUT : VS_STACK_NOTE_NONE;
    return (unsigned)(out - walk->frames);
}

/* 3.11 */
static unsigned walk_linked(uint64_t thread, struct walk *walk)
{
    const struct python_layout layout = python.layout;
    const bool deaths = atomic_load_explicit(&python_any_deaths, memory_order_relaxed);
    struct python_frame *out = walk->frames;
    struct python_frame *const end = out + walk->max;
    uint64_t frame = first_frame(thread);
    for (; frame != 0 && out < end; out++) {
        uint64_t code = code_of(&layout, frame);
        int32_t offset = offset_of(&layout, frame, code);
        out->code = code;
        out->version = deaths ? python_code_deaths(code) : 0;
        out->offset = offset;
        out->entry = python_byte(frame, layout.frame_entry) != 0 &&
                     (python_byte(frame, layout.frame_owner) != PYTHON_OWNER_GENERATOR ||
                      !is_thrown_through(code, offset));
        frame = python_word(frame, layout.frame_previous);
    }
    walk->note = frame != 0 ? VS_STACK_NOTE_PYTHON_CUT : VS_STACK_NOTE_NONE;
    return (unsigned)(out - walk->frames);
}

/* Version numbers count within one interpreter, and begin anew after its end. */
static bool versions_collide(uint64_t thread)
{
    return python_word(thread, python.layout.thread_interpreter) !=
               (uint64_t)(uintptr_t)python.symbols.main_interpreter() ||
           python_end_has_come();
}

/* What tells a code object apart whose version does not; 0: the frame is nobody's. */
__attribute__((noinline)) static uint32_t version_by_content(uint64_t code)
{
    return is_constructor_shim(code) ? 0 : python_code_content(&python.layout, code) | 1U;
}

/* 3.12 on: frames that belong to the interpreter show where a call of its loop begins. */
static unsigned walk_shimmed(uint64_t thread, struct walk *walk)
{
    const struct python_layout layout = python.layout;
    const uint32_t era = python_end_era() * ERA_STEP;
    const bool by_content = versions_collide(thread);
    struct python_frame *out = walk->frames;
    struct python_frame *const end = out + walk->max;
    bool is_last = false; /* of the call that ran the frame before */
    uint64_t frame = first_frame(thread);
    for (; frame != 0; frame = python_word(frame, layout.frame_previous)) {
        if (python_byte(frame, layout.frame_owner) >= PYTHON_OWNER_NO_FRAME) {
            is_last = true;
            continue;
        }
        uint64_t code = code_of(&layout, frame);
        uint32_t version = python_half(code, layout.code_version);
        if (__builtin_expect(version == 0 || by_content, 0)) {
            version = version_by_content(code);
            if (version == 0) {
                continue;
            }
        }
        if (out > walk->frames) {
            out[-1].entry = is_last;
        }
        is_last = false;
        if (out == end) {
            walk->note = VS_STACK_NOTE_PYTHON_CUT;
            return walk->max;
        }
        out->code = code;
        out->version = version + era;
        out->offset = offset_of(&layout, frame, code);
        out++;
    }
    if (out > walk->frames) {
        out[-1].entry = true;
    }
    return (unsigned)(out - walk->frames);
}

static unsigned walk_chain(uint64_t thread, struct walk *walk)
{
    switch (python.layout.chain) {
    case PYTHON_CHAIN_OBJECTS:
        return walk_objects(thread, walk);
    case PYTHON_CHAIN_LINKED:
        return walk_linked(thread, walk);
    default:
        return walk_shimmed(thread, walk);
    }
}

static uint64_t this_thread(void)
{
    void *thread = NULL;
    if (python.symbols.thread_attached != NULL) {
        thread = python.symbols.thread_attached();
    }
    if (thread == NULL) {
        thread = python.symbols.thread_of_gil_state();
    }
    return (uint64_t)(uintptr_t)thread;
}

/* For the report of a process that ends without another word. */
static void publish(void)
{
    if (shim_recording()) {
        atomic_store_explicit(&lifecycle_ring->python_state, python_state(), memory_order_relaxed);
        atomic_store_explicit(&lifecycle_ring->python_version, python.version,
                              memory_order_relaxed);
    }
}

static unsigned walk_thread(uint64_t thread, struct walk *walk, uint32_t state)
{
    if (state == STATE_FOUND && !prove(thread)) {
        walk->note = VS_STACK_NOTE_PYTHON_UNSUPPORTED;
        publish();
        return 0;
    }
    unsigned count = walk_chain(thread, walk);
    if (count == 0) {
        walk->note = VS_STACK_NOTE_PYTHON_NO_FRAME;
    }
    return count;
}

unsigned python_walk(struct python_frame *frames, unsigned max, enum vs_stack_note *note)
{
    struct walk walk = {.frames = frames, .max = max, .note = VS_STACK_NOTE_NONE};
    unsigned count = 0;
    /* Acquire: pairs with the release in python_prepare, which filled in the rest before. */
    uint32_t state = atomic_load_explicit(&python.state, memory_order_acquire);
    uint64_t thread = state != STATE_NONE ? this_thread() : 0;
    if (thread != 0 && state == STATE_UNSUPPORTED) {
        walk.note = VS_STACK_NOTE_PYTHON_UNSUPPORTED;
    } else if (thread != 0) {
        _Atomic int32_t *readers = python_end_enter();
        if (readers != NULL) {
            count = walk_thread(thread, &walk, state);
            python_end_leave(readers);
        } else {
            walk.note = VS_STACK_NOTE_PYTHON_FINALIZING;
        }
    }
    *note = walk.note;
    return count;
}

/* ---- walks that went before -------------------------------------------------------------- */

/* No interpreter, or none that knows this thread: it has no frames, and nothing need be read. */
static bool is_nothing(uint32_t state, uint64_t thread, struct python_known *known)
{
    if (thread != 0 && state != STATE_UNSUPPORTED) {
        return false;
    }
    *known = (struct python_known){.note = thread != 0 ? VS_STACK_NOTE_PYTHON_UNSUPPORTED
                                                       : VS_STACK_NOTE_NONE};
    known->tag = (uint64_t)known->note;
    return true;
}

bool python_recall(struct python_known *known)
{
    /* Acquire: as in python_walk. */
    uint32_t state = atomic_load_explicit(&python.state, memory_order_acquire);
    uint64_t thread = state != STATE_NONE ? this_thread() : 0;
    if (is_nothing(state, thread, known)) {
        return true;
    }
    known->age = PYTHON_MEMO_NO_AGE;
    _Atomic int32_t *readers = state == STATE_READY ? python_end_enter() : NULL;
    if (readers == NULL) {
        return false;
    }
    bool recalled = python_memo_recall(&python.layout, thread, first_frame(thread), known);
    python_end_leave(readers);
    return recalled;
}

void python_remember(const struct python_known *known)
{
    bool proved = atomic_load_explicit(&python.state, memory_order_acquire) == STATE_READY;
    _Atomic int32_t *readers =
        proved && known->age != PYTHON_MEMO_NO_AGE ? python_end_enter() : NULL;
    uint64_t thread = readers != NULL ? this_thread() : 0;
    if (thread != 0 && (python.layout.chain != PYTHON_CHAIN_SHIMMED || !versions_collide(thread))) {
        python_memo_keep(&python.layout, thread, first_frame(thread), known);
    }
    if (readers != NULL) {
        python_end_leave(readers);
    }
}

/* ---- calls of the interpreter loop ---------------------------------------------------- */

/* 3.11: each call keeps its `cframe` on the stack, whose frames end where the one before begins. */
static unsigned loops_linked(uint64_t thread, uint64_t *places, unsigned max)
{
    const struct python_layout *layout = &python.layout;
    unsigned count = 0;
    uint64_t holder = python_word(thread, layout->thread_top);
    while (holder != 0 && count < max) {
        uint64_t before = python_word(holder, layout->cframe_previous);
        uint64_t current = python_word(holder, layout->cframe_current);
        if (current != 0 &&
            (before == 0 || current != python_word(before, layout->cframe_current))) {
            places[count++] = holder;
        }
        holder = before;
    }
    return count;
}

/* 3.12 on: the frame that marks where a call begins is a variable of that call. */
static unsigned loops_shimmed(uint64_t thread, uint64_t *places, unsigned max)
{
    const struct python_layout *layout = &python.layout;
    bool runs = false; /* frames since the last such mark */
    unsigned count = 0;
    uint64_t frame = first_frame(thread);
    for (; frame != 0 && count < max; frame = python_word(frame, layout->frame_previous)) {
        if (python_byte(frame, layout->frame_owner) < PYTHON_OWNER_NO_FRAME) {
            runs = true; /* the one behind a constructor has its caller in the same call */
        } else if (runs) {
            places[count++] = frame;
            runs = false;
        }
    }
    return count;
}

unsigned python_loops(uint64_t *places, unsigned max)
{
    unsigned count = 0;
    bool proved = atomic_load_explicit(&python.state, memory_order_acquire) == STATE_READY;
    _Atomic int32_t *readers = proved ? python_end_enter() : NULL;
    uint64_t thread = readers != NULL ? this_thread() : 0;
    if (thread != 0 && python.layout.chain == PYTHON_CHAIN_LINKED) {
        count = loops_linked(thread, places, max);
    } else if (thread != 0 && python.layout.chain == PYTHON_CHAIN_SHIMMED) {
        count = loops_shimmed(thread, places, max);
    }
    if (readers != NULL) {
        python_end_leave(readers);
    }
    return count;
}

/* ---- names ---------------------------------------------------------------------------- */

/* Reads behind the caller's back are over when it sends: sending may wait for room. */
__attribute__((noinline)) static uint32_t name_code(const struct python_frame *frame,
                                                    _Atomic int32_t *readers)
{
    struct python_code_text text;
    python_code_read(&python.layout, frame->code, &text);
    python_end_leave(readers);
    publish();
    return python_code_send(frame->code, frame->version, &text);
}

static bool describe_frame(const struct python_frame *frame, uint64_t *word)
{
    _Atomic int32_t *readers = python_end_enter();
    if (readers == NULL) {
        return false;
    }
    if (python_word(frame->code, python.layout.object_type) !=
        (uint64_t)(uintptr_t)python.symbols.code_type) {
        python_end_leave(readers);
        atomic_store(&python.state, STATE_UNSUPPORTED);
        publish();
        return false;
    }
    uint32_t line = python_line(&python.layout, frame->code, frame->offset);
    uint32_t id = python_code_find(frame->code, frame->version);
    if (id != 0) {
        python_end_leave(readers);
    } else {
        id = name_code(frame, readers);
    }
    *word = vs_frame_interpreter(id, line, frame->entry);
    return id != 0;
}

int python_describe(const struct python_frame *frames, unsigned count, uint64_t *words)
{
    for (unsigned i = 0; i < count; i++) {
        if (!describe_frame(&frames[i], &words[i])) {
            return -1;
        }
    }
    return (int)count;
}

/* ---- which interpreter ------------------------------------------------------------------ */

static int note_loads(struct dl_phdr_info *info, size_t size, void *context)
{
    bool *changed = context;
    (void)size;
    *changed = info->dlpi_adds != python.adds || info->dlpi_subs != python.subs;
    python.adds = info->dlpi_adds;
    python.subs = info->dlpi_subs;
    return 1;
}

static enum state take(const struct python_symbols *symbols)
{
    python.symbols = *symbols;
    python.version = python_symbols_version(symbols);
    if (python_layout_choose(python.version, symbols->runtime, &python.layout) < 0) {
        return STATE_UNSUPPORTED;
    }
    if (python.layout.chain != PYTHON_CHAIN_SHIMMED) {
        python.symbols.thread_attached = NULL;
    } else if (symbols->main_interpreter == NULL) {
        return STATE_UNSUPPORTED;
    }
    return STATE_FOUND;
}

static void look_for_interpreter(void)
{
    struct python_symbols symbols;
    bool changed = false;
    dl_iterate_phdr(note_loads, &changed);
    if (!changed) {
        return;
    }
    bool found = python_symbols_find(&symbols);
    bool is_known = atomic_load(&python.state) != STATE_NONE;
    if (is_known && found && symbols.code_type == python.symbols.code_type) {
        return;
    }
    atomic_store(&python.state, STATE_NONE); /* the one that was known has been unloaded */
    python_memo_begin_age();
    if (found && python_code_prepare() == 0 && python_end_prepare(&symbols) == 0) {
        /* Release: see python_walk. */
        atomic_store_explicit(&python.state, take(&symbols), memory_order_release);
    }
}

static void warn_once(void)
{
    if (atomic_load(&python.state) == STATE_UNSUPPORTED && !atomic_exchange(&python.warned, true)) {
        shim_log(1, "Python %u.%u is not one whose frames can be read: native stacks only",
                 python.version >> 24, python.version >> 16 & 0xffU);
    }
}

void python_prepare(void)
{
    if (!shim_config.want_python || atomic_exchange(&python.preparing, true)) {
        return;
    }
    look_for_interpreter();
    uint32_t state = atomic_load(&python.state);
    if (lifecycle_ring != NULL && (state == STATE_FOUND || state == STATE_READY)) {
        python_end_watch();
    }
    warn_once();
    publish();
    atomic_store(&python.preparing, false);
}

bool python_is_missing(void)
{
    uint32_t state = atomic_load_explicit(&python.state, memory_order_relaxed);
    bool is_silent = state == STATE_UNSUPPORTED && !atomic_load(&python.warned);
    bool is_unwatched =
        state != STATE_UNSUPPORTED && lifecycle_ring != NULL && !python_end_is_watched();
    return shim_config.want_python && (state == STATE_NONE || is_silent || is_unwatched);
}

enum vs_python_state python_state(void)
{
    uint32_t state = atomic_load_explicit(&python.state, memory_order_relaxed);
    if (state == STATE_NONE) {
        return VS_PYTHON_NONE;
    }
    if (state == STATE_UNSUPPORTED) {
        return VS_PYTHON_UNSUPPORTED;
    }
    return python_end_has_come() ? VS_PYTHON_FINALIZED : VS_PYTHON_READY;
}
