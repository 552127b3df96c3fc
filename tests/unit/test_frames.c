/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merged frames: which native frames the interpreter's take the place of, what
 * stays when the two sides do not pair up, names, and the program's own code.
 * A stack is written as its words and read as one line, innermost frame first.
 */
#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "frame_word.h"
#include "frames.h"

/* Modules of the program, 64 KiB each; a native word is an address behind a call in one. */
enum {
    EXE = 0x10000000,
    PYTHON = 0x20000000,
    TORCH = 0x30000000,
    EXTENSION = 0x40000000,
    MODULE_BYTES = 0x10000
};
/* Functions of the python library by their offset. */
enum { LOOP = 0x100, LOOP_COLD = 0x200, VECTOR = 0x300, WRAPPER = 0x400, MAIN = 0x500 };
enum { STACK = 9, WORDS_MAX = 64 };

static char path[64];
static int file = -1;
static struct vs_writer *writer;
static struct vs_reader *reader;
static struct vs_frames *frames;

static void add_module(uint32_t id, uint32_t generation, uint64_t start, const char *where)
{
    struct vs_module_def module = {.id = id,
                                   .generation = generation,
                                   .start = start,
                                   .end = start + MODULE_BYTES,
                                   .load_bias = start,
                                   .path = where};
    cr_assert_eq(vs_writer_module(writer, &module), 0);
}

/* `address` of the call; the word's return address is behind it. */
static void add_symbol(uint32_t module, uint64_t address, const char *function)
{
    struct vs_symbol_frame frame = {function, "", 0};
    struct vs_symbol_def symbol = {module, address, 1, &frame};
    cr_assert_eq(vs_writer_symbol(writer, &symbol), 0);
}

static void add_code(uint32_t id, const char *name, const char *where)
{
    struct vs_code_def code = {.id = id, .first_line = 1, .name = name, .file = where};
    cr_assert_eq(vs_writer_code(writer, &code), 0);
}

static void set_up(void)
{
    static const char process[] = "{\"exe\":\"/opt/app/bin/serve\"}";
    snprintf(path, sizeof path, "/tmp/vs-frames-XXXXXX");
    file = mkstemp(path);
    cr_assert_eq(vs_writer_create(file, 16, 1, &writer), 0);
    cr_assert_eq(vs_writer_meta(writer, "process", process, sizeof process - 1), 0);
    add_module(1, 1, EXE, "/opt/app/bin/serve");
    add_module(2, 1, PYTHON, "/usr/lib/libpython3.11.so.1.0");
    add_module(3, 1, TORCH, "/usr/lib/python3/dist-packages/torch/lib/libtorch.so");
    add_module(4, 1, EXTENSION, "/opt/app/bin/fast.so");
    add_symbol(1, 0xff, "main");
    add_symbol(2, LOOP - 1, "_PyEval_EvalFrameDefault");
    add_symbol(2, LOOP_COLD - 1, "_PyEval_EvalFrameDefault.cold");
    add_symbol(2, VECTOR - 1, "_PyEval_Vector");
    add_symbol(2, WRAPPER - 1, "_PyEval_EvalFrame");
    add_symbol(2, MAIN - 1, "Py_RunMain");
    add_symbol(3, 0x0f, "at::empty");
    add_symbol(4, 0x0f, "fast_call");
    add_code(1, "train", "/home/u/train.py");
    add_code(2, "Linear.forward", "/usr/lib/python3/dist-packages/torch/nn/linear.py");
    add_code(3, "<module>", "/home/u/train.py");
    add_code(4, "Thread.run", "/usr/lib/python3.11/threading.py");
    add_code(5, "batches", "/home/u/data.py");
}

static void tear_down(void)
{
    vs_frames_free(frames);
    vs_reader_close(reader);
    close(file);
    unlink(path);
}

TestSuite(frames, .init = set_up, .fini = tear_down);

static uint64_t python(uint32_t code, uint32_t line)
{
    return vs_frame_interpreter(code, line, false);
}

static uint64_t entry(uint32_t code, uint32_t line)
{
    return vs_frame_interpreter(code, line, true);
}

static void add_stack(uint32_t id, uint32_t generation, const uint64_t *words, uint32_t count)
{
    struct vs_stack_def stack = {id, generation, count, words};
    cr_assert_eq(vs_writer_stack(writer, &stack), 0);
}

static void open_trace(void)
{
    struct vs_error error = {""};
    cr_assert_eq(vs_writer_close(writer, true), 0);
    cr_assert_eq(vs_reader_open(path, &reader, &error), 0, "%s", error.text);
    cr_assert_eq(vs_frames_new(reader, &frames), 0);
}

static void show_frame(FILE *out, const struct vs_frame *frame)
{
    if (frame->kind == VS_FRAME_NOTE)
        fprintf(out, "[%s]", frame->function);
    else if (frame->kind == VS_FRAME_PYTHON)
        fprintf(out, "%s:%u", frame->function == NULL ? "?" : frame->function, frame->line);
    else if (frame->function == NULL)
        fprintf(out, "+0x%lx", frame->address);
    else
        fprintf(out, "%s%s", frame->function, frame->inlined ? "(inlined)" : "");
}

/* The stack as one line; the caller frees it. */
static char *shown(uint32_t id)
{
    char *text = NULL;
    size_t bytes;
    const struct vs_frame *list;
    long count = vs_frames_of(frames, id, &list);
    FILE *out = open_memstream(&text, &bytes);
    cr_assert_geq(count, 0);
    for (long i = 0; i < count; i++) {
        fputs(i == 0 ? "" : " | ", out);
        show_frame(out, &list[i]);
    }
    fclose(out);
    return text;
}

/* `words` end with 0. */
static void expect(const char *expected, const uint64_t *words)
{
    uint32_t count = 0;
    while (words[count] != 0)
        count++;
    add_stack(STACK, 1, words, count);
    open_trace();
    char *got = shown(STACK);
    cr_assert_str_eq(got, expected);
    free(got);
}

#define EXPECT(expected, ...) expect(expected, (const uint64_t[]){__VA_ARGS__, 0})

/* ---- pairing --------------------------------------------------------------------------- */

Test(frames, python_takes_the_place_of_the_loop)
{
    EXPECT("at::empty | Linear.forward:114 | train:20 | <module>:31 | _PyEval_Vector | Py_RunMain",
           TORCH + 0x10, PYTHON + LOOP, PYTHON + VECTOR, PYTHON + MAIN, python(2, 114),
           python(1, 20), entry(3, 31));
}

Test(frames, a_c_extension_between_two_runs)
{
    EXPECT("at::empty | train:20 | fast_call | batches:5 | <module>:31 | Py_RunMain", TORCH + 0x10,
           PYTHON + LOOP, EXTENSION + 0x10, PYTHON + LOOP_COLD, PYTHON + MAIN, entry(1, 20),
           python(5, 5), entry(3, 31));
}

/* A generator is resumed by a call of the loop of its own. */
Test(frames, a_generator)
{
    EXPECT("at::empty | batches:7 | _PyEval_Vector | train:20 | <module>:31", TORCH + 0x10,
           PYTHON + LOOP, PYTHON + VECTOR, PYTHON + LOOP, entry(5, 7), python(1, 20), entry(3, 31));
}

Test(frames, a_wrapper_of_the_loop_is_not_the_loop)
{
    EXPECT("train:20 | _PyEval_EvalFrame | fast_call | <module>:31 | _PyEval_EvalFrame",
           PYTHON + LOOP, PYTHON + WRAPPER, EXTENSION + 0x10, PYTHON + LOOP, PYTHON + WRAPPER,
           entry(1, 20), entry(3, 31));
}

/* A custom evaluator between the loop and the function that calls it (torch.compile). */
Test(frames, a_wrapper_further_out_is_not_the_loop)
{
    EXPECT("train:20 | fast_call | _PyEval_EvalFrame | <module>:31", PYTHON + LOOP,
           EXTENSION + 0x10, PYTHON + WRAPPER, PYTHON + LOOP, entry(1, 20), entry(3, 31));
}

Test(frames, a_wrapper_stands_for_a_loop_that_has_no_name)
{
    EXPECT("at::empty | +0xffe | train:20 | _PyEval_Vector | +0xffe | <module>:31", TORCH + 0x10,
           PYTHON + 0xfff, PYTHON + WRAPPER, PYTHON + VECTOR, PYTHON + 0xfff, PYTHON + WRAPPER,
           entry(1, 20), entry(3, 31));
}

static uint64_t loop(uint64_t address)
{
    return address | VS_FRAME_LOOP;
}

/* The recorder saw which frames run the loop: names do not matter, not even the loop's. */
Test(frames, marked_calls_of_the_loop)
{
    EXPECT("at::empty | batches:7 | train:20 | _PyEval_Vector | _PyEval_EvalFrameDefault | "
           "<module>:31 | main",
           TORCH + 0x10, loop(PYTHON + 0xfff), PYTHON + VECTOR, PYTHON + LOOP,
           loop(PYTHON + LOOP_COLD), EXE + 0x100, python(5, 7), entry(1, 20), entry(3, 31));
}

Test(frames, a_marked_call_that_was_interrupted)
{
    EXPECT("at::empty | batches:7 | train:20 | main | <module>:31", TORCH + 0x10,
           loop((PYTHON + 0x1000) | VS_FRAME_EXACT), EXE + 0x100, python(5, 7), entry(1, 20),
           entry(3, 31));
}

/* Bit 61 of an interpreter word is its code id's. */
Test(frames, a_large_code_id_is_no_mark)
{
    add_code(VS_FRAME_CODE_MAX, "last", "/home/u/train.py");
    EXPECT("at::empty | last:3 | main", TORCH + 0x10, PYTHON + LOOP, EXE + 0x100,
           entry(VS_FRAME_CODE_MAX, 3));
}

/* ---- what does not pair up ----------------------------------------------------------------- */

Test(frames, a_thread_without_python_keeps_its_native_stack)
{
    EXPECT("at::empty | +0xfff | main | [no Python code runs in this thread]", TORCH + 0x10,
           TORCH + 0x1000, EXE + 0x100, vs_frame_note(VS_STACK_NOTE_PYTHON_NO_FRAME));
}

Test(frames, loops_left_over_stay_native)
{
    EXPECT("train:20 | fast_call | _PyEval_EvalFrameDefault | Py_RunMain", PYTHON + LOOP,
           EXTENSION + 0x10, PYTHON + LOOP, PYTHON + MAIN, entry(1, 20));
}

Test(frames, python_left_over_follows)
{
    EXPECT("at::empty | train:20 | fast_call | batches:5 | <module>:31", TORCH + 0x10,
           PYTHON + LOOP, EXTENSION + 0x10, entry(1, 20), entry(5, 5), entry(3, 31));
}

Test(frames, no_loop_has_a_name)
{
    EXPECT("at::empty | +0xffe | main | train:20 | <module>:31", TORCH + 0x10, PYTHON + 0xfff,
           EXE + 0x100, python(1, 20), entry(3, 31));
}

Test(frames, native_cut_at_depth)
{
    EXPECT("train:20 | fast_call | [… more native frames: cut at VRAMSCOPE_DEPTH] | <module>:31",
           PYTHON + LOOP, EXTENSION + 0x10, vs_frame_note(VS_STACK_NOTE_NATIVE_CUT), entry(1, 20),
           entry(3, 31));
}

Test(frames, native_that_cannot_be_followed)
{
    EXPECT("at::empty | [native stack ends here: no unwind information] | train:20", TORCH + 0x10,
           vs_frame_note(VS_STACK_NOTE_NATIVE_STOPPED), entry(1, 20));
}

Test(frames, python_cut_at_depth_inside_a_run)
{
    EXPECT("train:20 | batches:5 | [… more Python frames: cut at VRAMSCOPE_DEPTH] | "
           "_PyEval_Vector | _PyEval_EvalFrameDefault | main",
           PYTHON + LOOP, PYTHON + VECTOR, PYTHON + LOOP, EXE + 0x100, python(1, 20), python(5, 5),
           vs_frame_note(VS_STACK_NOTE_PYTHON_CUT));
}

Test(frames, python_cut_at_depth_between_runs)
{
    EXPECT("train:20 | [… more Python frames: cut at VRAMSCOPE_DEPTH] | _PyEval_Vector | "
           "_PyEval_EvalFrameDefault",
           PYTHON + LOOP, PYTHON + VECTOR, PYTHON + LOOP, entry(1, 20),
           vs_frame_note(VS_STACK_NOTE_PYTHON_CUT));
}

Test(frames, both_cut_at_depth)
{
    EXPECT("train:20 | at::empty | batches:5 | [… more Python frames: cut at VRAMSCOPE_DEPTH] | "
           "_PyEval_Vector | [… more native frames: cut at VRAMSCOPE_DEPTH]",
           PYTHON + LOOP, TORCH + 0x10, PYTHON + LOOP, PYTHON + VECTOR,
           vs_frame_note(VS_STACK_NOTE_NATIVE_CUT), entry(1, 20), python(5, 5),
           vs_frame_note(VS_STACK_NOTE_PYTHON_CUT));
}

Test(frames, python_only)
{
    EXPECT("train:20 | batches:5 | <module>:31", entry(1, 20), python(5, 5), entry(3, 31));
}

Test(frames, native_only)
{
    EXPECT("at::empty | _PyEval_EvalFrameDefault | main | "
           "[Python frames not read: this version of Python is not known]",
           TORCH + 0x10, PYTHON + LOOP, EXE + 0x100,
           vs_frame_note(VS_STACK_NOTE_PYTHON_UNSUPPORTED));
}

Test(frames, python_that_could_not_be_named)
{
    EXPECT("at::empty | _PyEval_EvalFrameDefault | main | "
           "[Python frames missing: one of them could not be named]",
           TORCH + 0x10, PYTHON + LOOP, EXE + 0x100, vs_frame_note(VS_STACK_NOTE_PYTHON_NO_ROOM));
}

Test(frames, remarks_of_a_later_version)
{
    EXPECT("train:20 | main | [a remark of a later version of vramscope]", PYTHON + LOOP,
           EXE + 0x100, entry(1, 20), vs_frame_note((enum vs_stack_note)99));
}

/* ---- names ------------------------------------------------------------------------------------
 */

Test(frames, inlined_calls_are_frames)
{
    static const struct vs_symbol_frame inlined[] = {
        {"clamp", "/src/k.h", 12}, {"scale", "/src/k.h", 30}, {"kernel", "/src/k.cpp", 99}};
    struct vs_symbol_def symbol = {4, 0x2f, 3, inlined};
    cr_assert_eq(vs_writer_symbol(writer, &symbol), 0);
    EXPECT("clamp(inlined) | scale(inlined) | kernel | main", EXTENSION + 0x30, EXE + 0x100);
    const struct vs_frame *list;
    cr_assert_eq(vs_frames_of(frames, STACK, &list), 4);
    cr_assert_str_eq(list[1].file, "/src/k.h");
    cr_assert_eq(list[1].line, 30);
    cr_assert_str_eq(list[1].module, "/opt/app/bin/fast.so");
    cr_assert_eq(list[2].address, 0x2f);
    cr_assert_null(list[3].file);
}

/* The helpers that the compiler put into the loop are the loop. */
Test(frames, a_loop_with_inlined_helpers)
{
    static const struct vs_symbol_frame inlined[] = {{"do_call_core", "ceval.c", 1},
                                                     {"_PyEval_EvalFrameDefault", "ceval.c", 2}};
    struct vs_symbol_def symbol = {2, 0x5f, 2, inlined};
    cr_assert_eq(vs_writer_symbol(writer, &symbol), 0);
    EXPECT("at::empty | train:20 | main", TORCH + 0x10, PYTHON + 0x60, EXE + 0x100, entry(1, 20));
}

/* What the compiler put into a caller of the loop belongs to the loop when it does nothing else. */
Test(frames, an_inlined_wrapper_of_the_loop_is_not_shown)
{
    static const struct vs_symbol_frame inlined[] = {{"_PyEval_EvalFrame", "pycore_ceval.h", 73},
                                                     {"_PyEval_Vector", "ceval.c", 6434}};
    struct vs_symbol_def symbol = {2, 0x6f, 2, inlined};
    cr_assert_eq(vs_writer_symbol(writer, &symbol), 0);
    EXPECT("train:20 | _PyEval_Vector | <module>:31", PYTHON + LOOP, PYTHON + 0x70, PYTHON + LOOP,
           entry(1, 20), entry(3, 31));
}

Test(frames, an_interrupted_instruction_is_looked_up_as_it_is)
{
    EXPECT("at::empty | +0x10 | main", TORCH + 0x10, (TORCH + 0x10) | VS_FRAME_EXACT, EXE + 0x100);
}

Test(frames, addresses_and_codes_that_nobody_knows)
{
    add_symbol(1, 0x200, "");
    EXPECT("+0x4fffffff | +0x200 | ?:3 | ?:0", 0x50000000, EXE + 0x201, python(77, 3),
           entry(78, 0));
    const struct vs_frame *list;
    cr_assert_eq(vs_frames_of(frames, STACK, &list), 4);
    cr_assert_null(list[0].module);
    cr_assert_str_eq(list[1].module, "/opt/app/bin/serve");
    cr_assert_eq(list[2].kind, VS_FRAME_PYTHON);
    cr_assert_null(list[2].file);
}

Test(frames, the_module_of_that_time)
{
    static const uint64_t word[] = {EXTENSION + 0x10};
    add_module(5, 4, EXTENSION, "/opt/app/bin/second.so");
    add_module(6, 9, EXTENSION - 0x1000, "/opt/app/bin/third.so");
    add_symbol(5, 0x0f, "second_call");
    add_symbol(6, 0x100f, "third_call");
    for (uint32_t generation = 0; generation < 11; generation++)
        add_stack(100 + generation, generation, word, 1);
    open_trace();
    for (uint32_t generation = 0; generation < 11; generation++) {
        char *got = shown(100 + generation);
        cr_assert_str_eq(got,
                         generation == 0  ? "+0x4000000f"
                         : generation < 4 ? "fast_call"
                         : generation < 9 ? "second_call"
                                          : "third_call",
                         "generation %u", generation);
        free(got);
    }
}

Test(frames, no_stack)
{
    add_stack(STACK, 1, NULL, 0);
    open_trace();
    const struct vs_frame *list;
    cr_assert_eq(vs_frames_of(frames, 0, &list), 0);
    cr_assert_eq(vs_frames_of(frames, STACK, &list), 0);
    cr_assert_eq(vs_frames_of(frames, 12345, &list), 0);
    cr_assert_null(list);
}

/* ---- the program's own
 * ---------------------------------------------------------------------------- */

static long own_of(uint32_t id)
{
    const struct vs_frame *list;
    long count = vs_frames_of(frames, id, &list);
    return vs_frames_own(list, (size_t)count);
}

Test(frames, the_place_is_the_programs_own_code)
{
    static const uint64_t in_python[] = {TORCH + 0x10, PYTHON + LOOP, EXE + 0x100,
                                         (1ULL << 63) | 2ULL << 32 | 114, /* torch/nn */
                                         (1ULL << 63) | 1ULL << 32 | 20};
    static const uint64_t in_native[] = {TORCH + 0x10, EXTENSION + 0x10, EXE + 0x100};
    static const uint64_t in_libraries[] = {(1ULL << 63) | VS_STACK_NOTE_PYTHON_FINALIZING,
                                            TORCH + 0x10, PYTHON + VECTOR};
    static const uint64_t in_thread[] = {TORCH + 0x10, (1ULL << 63) | 4ULL << 32 | 9, EXE + 0x100};
    static const uint64_t nowhere[] = {(1ULL << 63) | VS_STACK_NOTE_PYTHON_FINALIZING};
    add_stack(1, 1, in_python, 5);
    add_stack(2, 1, in_native, 3);
    add_stack(3, 1, in_libraries, 3);
    add_stack(4, 1, in_thread, 3);
    add_stack(5, 1, nowhere, 1);
    open_trace();
    cr_assert_eq(own_of(1), 2, "the innermost own Python frame");
    cr_assert_eq(own_of(2), 1, "the object beside the executable");
    cr_assert_eq(own_of(3), 0, "the innermost of all");
    cr_assert_eq(own_of(4), 1, "Python's own library is not the program's");
    cr_assert_eq(own_of(5), -1);
    cr_assert_eq(vs_frames_own(NULL, 0), -1);
}

Test(frames, python_code_that_is_the_programs_own)
{
    static const struct {
        const char *name, *file;
        bool own;
    } cases[] = {
        {"f", "/home/u/train.py", true},
        {"f", "train.py", true},
        {"f", "/home/u/lib/python_tools/x.py", true},
        {"f", "/home/u/venv/lib/python3.12/site-packages/torch/x.py", false},
        {"f", "h-0123456789abcdef/site-packages/torch/x.py", false},
        {"f", "h-0123456789abcdef/lib/python3.11/threading.py", false},
        {"f", "h-0123456789abcdef", true},
        {"f", "/usr/lib64/python3.9/threading.py", false},
        {"f", "/usr/lib/python3.13t/threading.py", false},
        {"f", "<frozen importlib._bootstrap>", false},
        {"f", "<eval_with_key>.3", false},
        {"<module>", "<string>", true},
        {"train", "<string>", true},
        {"Point.__init__", "<string>", false},
        {"__create_fn__.<locals>.__init__", "<string>", false},
        {"f", "<stdin>", true},
        {"f", "<ipython-input-3-0a1b>", true},
        {"f", "", false},
    };
    enum { CASES = sizeof cases / sizeof cases[0] };
    for (uint32_t i = 0; i < CASES; i++) {
        uint64_t word = python(100 + i, 1);
        add_code(100 + i, cases[i].name, cases[i].file);
        add_stack(100 + i, 1, &word, 1);
    }
    open_trace();
    for (uint32_t i = 0; i < CASES; i++) {
        const struct vs_frame *list;
        cr_assert_eq(vs_frames_of(frames, 100 + i, &list), 1);
        cr_assert_eq(vs_frame_is_own(list), cases[i].own, "%s in %s", cases[i].name, cases[i].file);
    }
}

Test(frames, an_interpreter_is_not_the_programs_own)
{
    static const uint64_t words[] = {TORCH + 0x10, EXTENSION + 0x10, EXE + 0x100};
    static const char process[] = "{\"exe\":\"/opt/app/bin/python3.11\"}";
    cr_assert_eq(vs_writer_meta(writer, "process", process, sizeof process - 1), 0);
    add_module(1, 1, EXE, "/opt/app/bin/python3.11");
    add_stack(1, 1, words, 3);
    open_trace();
    cr_assert_eq(own_of(1), 0);
}

/* ---- many
 * ---------------------------------------------------------------------------------------------- */

/* What was asked for stays until as many others were; texts stay. */
Test(frames, more_stacks_than_are_kept)
{
    enum { MANY = 3 * VS_FRAMES_KEPT };
    for (uint32_t id = 1; id <= MANY; id++) {
        uint64_t words[] = {TORCH + 0x10, python(1, id)};
        add_stack(id, 1, words, 2);
    }
    open_trace();
    const struct vs_frame *first, *list;
    cr_assert_eq(vs_frames_of(frames, 1, &first), 2);
    const char *function = first[0].function;
    for (uint32_t id = 2; id <= VS_FRAMES_KEPT; id++)
        cr_assert_eq(vs_frames_of(frames, id, &list), 2);
    cr_assert_eq(vs_frames_of(frames, 1, &list), 2);
    cr_assert_eq(list, first, "resolved once");
    for (uint32_t id = VS_FRAMES_KEPT + 1; id < 2 * VS_FRAMES_KEPT; id++)
        cr_assert_eq(vs_frames_of(frames, id, &list), 2);
    cr_assert_eq(first[1].line, 1, "still there: as many others have not been asked for");
    for (uint32_t id = MANY; id > 0; id--) {
        cr_assert_eq(vs_frames_of(frames, id, &list), 2);
        cr_assert_eq(list[1].line, id);
        cr_assert_eq(list[0].function, function);
    }
}
