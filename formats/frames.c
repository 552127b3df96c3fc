/* SPDX-License-Identifier: Apache-2.0 */
/* Resolving and merging the frames of a stack: see frames.h. */
#include "frames.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "frame_word.h"
#include "python_path.h"

/* Of one stack, inlined calls included; a recorder's own bound is far below it. */
#define FRAMES_MAX 65536U
#define BUCKETS 16384U

/* A resolved stack; the ones kept form a list from the one asked for last to the oldest. */
struct kept {
    uint32_t stack;
    uint32_t count;
    struct vs_frame *list;
    struct kept *newer, *older;
    struct kept *next; /* in its bucket */
};

struct vs_frames {
    const struct vs_reader *reader;
    char *exe;         /* path of the program; NULL not known */
    size_t exe_folder; /* bytes of it up to and including the last '/' */
    bool exe_is_python;
    struct kept *buckets[BUCKETS];
    struct kept ends; /* ends.older is the newest, ends.newer the oldest */
    size_t kept;
};

/* ---- life ------------------------------------------------------------------------------ */

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

static int find_exe(struct vs_frames *frames)
{
    const char *text = vs_reader_meta(frames->reader, "process");
    json_t *process = text == NULL ? NULL : json_loads(text, 0, NULL);
    const char *exe = json_string_value(json_object_get(process, "exe"));
    if (exe != NULL)
        frames->exe = strdup(exe);
    json_decref(process);
    if (exe != NULL && frames->exe == NULL)
        return -ENOMEM;
    if (frames->exe != NULL) {
        const char *name = file_name(frames->exe);
        frames->exe_folder = (size_t)(name - frames->exe);
        frames->exe_is_python = strncmp(name, "python", strlen("python")) == 0;
    }
    return 0;
}

int vs_frames_new(const struct vs_reader *reader, struct vs_frames **out)
{
    *out = NULL;
    struct vs_frames *frames = calloc(1, sizeof *frames);
    if (frames == NULL)
        return -ENOMEM;
    frames->reader = reader;
    frames->ends.older = frames->ends.newer = &frames->ends;
    int error = find_exe(frames);
    if (error != 0) {
        vs_frames_free(frames);
        return error;
    }
    *out = frames;
    return 0;
}

void vs_frames_free(struct vs_frames *frames)
{
    if (frames == NULL)
        return;
    for (struct kept *one = frames->ends.older, *older; one != &frames->ends; one = older) {
        older = one->older;
        free(one->list);
        free(one);
    }
    free(frames->exe);
    free(frames);
}

/* ---- the stacks asked for last ----------------------------------------------------------- */

static struct kept **bucket_of(struct vs_frames *frames, uint32_t stack)
{
    return &frames->buckets[(stack * 0x9e3779b97f4a7c15ULL >> 32) % BUCKETS];
}

static void unlink_kept(struct kept *one)
{
    one->newer->older = one->older;
    one->older->newer = one->newer;
}

static void make_newest(struct vs_frames *frames, struct kept *one)
{
    one->newer = &frames->ends;
    one->older = frames->ends.older;
    one->older->newer = one;
    frames->ends.older = one;
}

static struct kept *find_kept(struct vs_frames *frames, uint32_t stack)
{
    struct kept *one = *bucket_of(frames, stack);
    while (one != NULL && one->stack != stack)
        one = one->next;
    if (one != NULL && frames->ends.older != one) {
        unlink_kept(one);
        make_newest(frames, one);
    }
    return one;
}

static void forget_oldest(struct vs_frames *frames)
{
    struct kept *oldest = frames->ends.newer;
    struct kept **link = bucket_of(frames, oldest->stack);
    while (*link != oldest)
        link = &(*link)->next;
    *link = oldest->next;
    unlink_kept(oldest);
    free(oldest->list);
    free(oldest);
    frames->kept--;
}

/* Takes over `list`. */
static struct kept *keep(struct vs_frames *frames, uint32_t stack, struct vs_frame *list,
                         size_t count)
{
    struct kept *one = malloc(sizeof *one);
    if (one == NULL)
        return NULL;
    struct vs_frame *fitted = count == 0 ? NULL : realloc(list, count * sizeof *list);
    if (fitted != NULL)
        list = fitted;
    if (frames->kept == VS_FRAMES_KEPT)
        forget_oldest(frames);
    struct kept **bucket = bucket_of(frames, stack);
    *one = (struct kept){.stack = stack, .count = (uint32_t)count, .list = list, .next = *bucket};
    *bucket = one;
    make_newest(frames, one);
    frames->kept++;
    return one;
}

/* ---- what is the program's own -------------------------------------------------------------- */

static bool begins_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* Methods that classes get made for them (dataclasses, named tuples) are compiled from texts. */
static bool is_special_method(const char *name)
{
    const char *last = name == NULL ? NULL : strrchr(name, '.');
    const char *own = last == NULL ? name : last + 1;
    return own != NULL && begins_with(own, "__");
}

/* Code typed in, given with -c or in a notebook is the program's; other code without a file not. */
static bool is_own_text(const char *file, const char *function)
{
    return strcmp(file, "<stdin>") == 0 || begins_with(file, "<ipython-input") ||
           (strcmp(file, "<string>") == 0 && !is_special_method(function));
}

bool vs_python_is_own(const char *file, const char *function)
{
    if (file == NULL)
        return false;
    return file[0] == '<' ? is_own_text(file, function) : vs_python_library_part(file) == NULL;
}

/* The executable and what lies in the same folder, unless it is an interpreter. */
static bool is_own_module(const struct vs_frames *frames, const char *path)
{
    return path != NULL && frames->exe != NULL && !frames->exe_is_python &&
           (strcmp(path, frames->exe) == 0 ||
            (frames->exe_folder > 0 && strncmp(path, frames->exe, frames->exe_folder) == 0 &&
             strchr(path + frames->exe_folder, '/') == NULL));
}

bool vs_frame_is_own(const struct vs_frame *frame)
{
    return frame->own;
}

long vs_frames_own(const struct vs_frame *frames, size_t count)
{
    long native = -1, any = -1;
    for (size_t i = 0; i < count; i++) {
        if (frames[i].kind == VS_FRAME_PYTHON && frames[i].own)
            return (long)i;
        if (native < 0 && frames[i].kind == VS_FRAME_NATIVE && frames[i].own)
            native = (long)i;
        if (any < 0 && frames[i].kind != VS_FRAME_NOTE)
            any = (long)i;
    }
    return native >= 0 ? native : any;
}

/* ---- building the merged list ------------------------------------------------------------------
 */

struct merge {
    const struct vs_frames *frames;
    const uint64_t *words;
    uint32_t word_count;
    uint32_t generation;
    uint32_t interpreter; /* index of the next interpreter word, word_count: none left */
    bool marked;          /* the recorder told which native frames run the interpreter */
    bool inner_loop;      /* a loop function came since the last wrapper of one */
    struct vs_frame *list;
    size_t count, capacity;
    int error;
};

static void push(struct merge *merge, const struct vs_frame *frame)
{
    static const struct vs_frame too_many = {.kind = VS_FRAME_NOTE,
                                             .function = "… more frames than can be shown"};
    if (merge->error != 0 || merge->count == FRAMES_MAX)
        return;
    if (merge->count == merge->capacity) {
        size_t capacity = merge->capacity ? merge->capacity * 2 : 32;
        struct vs_frame *grown = realloc(merge->list, capacity * sizeof *grown);
        if (grown == NULL) {
            merge->error = -ENOMEM;
            return;
        }
        merge->list = grown;
        merge->capacity = capacity;
    }
    merge->list[merge->count] = merge->count == FRAMES_MAX - 1 ? too_many : *frame;
    merge->count++;
}

static const char *or_null(const char *text)
{
    return text == NULL || text[0] == 0 ? NULL : text;
}

static void push_note(struct merge *merge, enum vs_stack_note note)
{
    static const char *const texts[] = {
        [VS_STACK_NOTE_NATIVE_CUT] = "… more native frames: cut at VRAMSCOPE_DEPTH",
        [VS_STACK_NOTE_NATIVE_STOPPED] = "native stack ends here: no unwind information",
        [VS_STACK_NOTE_PYTHON_CUT] = "… more Python frames: cut at VRAMSCOPE_DEPTH",
        [VS_STACK_NOTE_PYTHON_NO_FRAME] = "no Python code runs in this thread",
        [VS_STACK_NOTE_PYTHON_FINALIZING] = "Python frames not read: the interpreter shuts down",
        [VS_STACK_NOTE_PYTHON_UNSUPPORTED] =
            "Python frames not read: this version of Python is not known",
        [VS_STACK_NOTE_PYTHON_NO_ROOM] = "Python frames missing: one of them could not be named"};
    const char *text = (size_t)note < sizeof texts / sizeof texts[0] ? texts[note] : NULL;
    struct vs_frame frame = {.kind = VS_FRAME_NOTE,
                             .address = (uint64_t)note,
                             .function =
                                 text != NULL ? text : "a remark of a later version of vramscope"};
    push(merge, &frame);
}

static void push_python(struct merge *merge, uint64_t word)
{
    const struct vs_code_def *code = vs_reader_code(merge->frames->reader, vs_frame_code(word));
    struct vs_frame frame = {.kind = VS_FRAME_PYTHON, .line = vs_frame_line(word)};
    if (code != NULL) {
        frame.function = or_null(code->name);
        frame.file = or_null(code->file);
    }
    frame.own = vs_python_is_own(frame.file, frame.function);
    push(merge, &frame);
}

/* A native word, its module and what is known of the place. */
struct place {
    const struct vs_module_def *module;
    const struct vs_symbol_def *symbol;
    uint64_t address;
};

static struct place place_of(const struct merge *merge, uint64_t word)
{
    const struct vs_reader *reader = merge->frames->reader;
    struct place place = {.address = vs_frame_lookup_address(word)};
    place.module = vs_reader_module_at(reader, place.address, merge->generation);
    if (place.module != NULL) {
        place.address -= place.module->load_bias;
        place.symbol = vs_reader_symbol(reader, place.module->id, place.address);
    }
    return place;
}

/* `name` itself or a part of it that the compiler set apart ("name.cold", "name.constprop.0"). */
static bool is_function(const char *function, const char *name)
{
    size_t bytes = strlen(name);
    return function[0] == name[0] && strncmp(function, name, bytes) == 0 &&
           (function[bytes] == 0 || strchr(".@ ", function[bytes]) != NULL);
}

/* Does nothing but call the interpreter loop. */
static bool is_wrapper(const char *function)
{
    static const char *const wrappers[] = {"_PyEval_EvalFrame", "PyEval_EvalFrameEx",
                                           "PyEval_EvalFrame"};
    for (size_t i = 0; i < sizeof wrappers / sizeof wrappers[0]; i++)
        if (is_function(function, wrappers[i]))
            return true;
    return false;
}

/* A wrapper that was compiled into its caller belongs to the interpreter, as the loop does. */
static void push_native(struct merge *merge, const struct place *place)
{
    struct vs_frame frame = {.kind = VS_FRAME_NATIVE, .address = place->address};
    if (place->module != NULL)
        frame.module = or_null(place->module->path);
    frame.own = is_own_module(merge->frames, frame.module);
    frame.sought = place->symbol != NULL;
    uint32_t count = place->symbol == NULL ? 0 : place->symbol->count;
    if (count == 0)
        push(merge, &frame);
    for (uint32_t i = 0; i < count; i++) {
        frame.function = or_null(place->symbol->frames[i].function);
        frame.file = or_null(place->symbol->frames[i].file);
        frame.line = place->symbol->frames[i].line;
        frame.inlined = i + 1 < count;
        if (!frame.inlined || !is_wrapper(place->symbol->frames[i].function))
            push(merge, &frame);
    }
}

/* ---- the interpreter's frames in the place of its loop ------------------------------------------
 */

static bool has_loop(const struct vs_symbol_def *symbol)
{
    for (uint32_t i = 0; symbol != NULL && i < symbol->count; i++)
        if (is_function(symbol->frames[i].function, "_PyEval_EvalFrameDefault"))
            return true;
    return false;
}

static bool has_wrapper(const struct vs_symbol_def *symbol)
{
    for (uint32_t i = 0; symbol != NULL && i < symbol->count; i++)
        if (is_wrapper(symbol->frames[i].function))
            return true;
    return false;
}

/*
 * The functions that call the loop are the loop where the loop itself was not
 * seen: compiled into them, or without a name.
 */
static bool is_loop_by_name(struct merge *merge, const struct vs_symbol_def *symbol)
{
    if (has_loop(symbol)) {
        merge->inner_loop = true;
        return true;
    }
    if (!has_wrapper(symbol))
        return false;
    bool stands_for_it = !merge->inner_loop;
    merge->inner_loop = false;
    return stands_for_it;
}

static bool is_loop(struct merge *merge, uint64_t word, const struct vs_symbol_def *symbol)
{
    return merge->marked ? vs_frame_is_loop(word) : is_loop_by_name(merge, symbol);
}

static bool is_native_note(enum vs_stack_note note)
{
    return note == VS_STACK_NOTE_NATIVE_CUT || note == VS_STACK_NOTE_NATIVE_STOPPED;
}

/* Moves on to the next interpreter word at or behind `from`. */
static void seek(struct merge *merge, uint32_t from)
{
    while (from < merge->word_count && (!vs_frame_is_interpreter(merge->words[from]) ||
                                        is_native_note(vs_frame_note_of(merge->words[from]))))
        from++;
    merge->interpreter = from;
}

static bool left(const struct merge *merge)
{
    return merge->interpreter < merge->word_count;
}

/* The next word is a frame, not a remark about those before it. */
static bool frame_next(const struct merge *merge)
{
    return left(merge) && vs_frame_code(merge->words[merge->interpreter]) != 0;
}

static void push_next(struct merge *merge)
{
    uint64_t word = merge->words[merge->interpreter];
    enum vs_stack_note note = vs_frame_note_of(word);
    if (vs_frame_code(word) == 0)
        push_note(merge, note);
    else
        push_python(merge, word);
    seek(merge, merge->interpreter + 1);
}

/* The frames of one call of the loop, and the remark that they are not all. */
static void push_run(struct merge *merge)
{
    bool entry = false;
    while (!entry && frame_next(merge)) {
        entry = (merge->words[merge->interpreter] & VS_FRAME_ENTRY) != 0;
        push_next(merge);
    }
    if (left(merge) &&
        vs_frame_note_of(merge->words[merge->interpreter]) == VS_STACK_NOTE_PYTHON_CUT)
        push_next(merge);
}

static void merge_words(struct merge *merge)
{
    seek(merge, 0);
    for (uint32_t i = 0; i < merge->word_count; i++)
        merge->marked |= vs_frame_is_loop(merge->words[i]);
    for (uint32_t i = 0; i < merge->word_count; i++) {
        uint64_t word = merge->words[i];
        if (vs_frame_is_interpreter(word))
            continue;
        struct place place = place_of(merge, word);
        if (is_loop(merge, word, place.symbol) && frame_next(merge))
            push_run(merge);
        else
            push_native(merge, &place);
    }
    for (uint32_t i = 0; i < merge->word_count; i++)
        if (is_native_note(vs_frame_note_of(merge->words[i])))
            push_note(merge, vs_frame_note_of(merge->words[i]));
    while (left(merge))
        push_next(merge);
}

long vs_frames_of(struct vs_frames *frames, uint32_t stack, const struct vs_frame **out)
{
    *out = NULL;
    const struct kept *kept = find_kept(frames, stack);
    if (kept == NULL) {
        const struct vs_stack_def *def = stack == 0 ? NULL : vs_reader_stack(frames->reader, stack);
        if (def == NULL || def->frame_count == 0)
            return 0;
        struct merge merge = {.frames = frames,
                              .words = def->frames,
                              .word_count = def->frame_count,
                              .generation = def->generation};
        merge_words(&merge);
        kept = merge.error == 0 ? keep(frames, stack, merge.list, merge.count) : NULL;
        if (kept == NULL) {
            free(merge.list);
            return -ENOMEM;
        }
    }
    *out = kept->list;
    return (long)kept->count;
}
