/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks for people: what a place is named after, and its stack folded to the
 * program's own frames, with runs of library frames as one line.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "frame_word.h"
#include "python_path.h"
#include "report_sections.h"

enum { NAME_ROOM = 256, ORIGINS = 3 };

/* ---- names of frames ---------------------------------------------------------------- */

/* The part behind the last but one slash: enough to tell two `model.py` apart. */
static const char *last_two(const char *path)
{
    const char *at = strrchr(path, '/');
    while (at != NULL && at > path && at[-1] != '/')
        at--;
    return at == NULL || at == path ? path : at;
}

/* "/home/me/" says too little about where a program lives to be left out. */
static bool is_deep(const char *folder)
{
    size_t slashes = 0;
    for (; *folder != 0; folder++)
        slashes += *folder == '/';
    return slashes > 2;
}

static const char *python_file(const struct report *report, const char *file)
{
    if (file == NULL)
        return "?";
    const char *root = report->places->root;
    const char *library = vs_python_library_part(file);
    if (library != NULL && strncmp(library, "/lib", 4) == 0)
        library = strchr(library + 1, '/'); /* "/lib/python3.11/threading.py" */
    if (library != NULL)
        return strchr(library + 1, '/') + 1;
    if (is_deep(root) && strncmp(file, root, strlen(root)) == 0)
        return file + strlen(root);
    return file[0] == '/' ? last_two(file) : file;
}

/* True where "(" or "<" at `at` belongs to the name: an operator, an anonymous namespace. */
static bool is_of_the_name(const char *function, const char *at)
{
    static const char operator[] = "operator";
    size_t before = (size_t)(at - function);
    while (before > 0 && strchr("<>-=()", function[before - 1]) != NULL)
        before--;
    if (before >= sizeof(operator) - 1 &&
        strncmp(function + before - (sizeof(operator) - 1), operator, sizeof(operator) - 1) == 0)
        return true;
    return strncmp(at, "(anonymous", 10) == 0;
}

/* "void at::f<float>(at::Tensor const&)" → "at::f": the arguments say little and fill lines. */
static void short_function(const char *function, char *out, size_t room)
{
    size_t length = 0;
    int depth = 0;
    bool name_ended = false;
    for (const char *at = function; *at != 0 && !name_ended && length + 1 < room; at++) {
        bool named = depth == 0 && strchr("(<>", *at) != NULL && is_of_the_name(function, at);
        if (named && *at == '(') { /* whole: "(anonymous namespace)", "()" */
            size_t whole = strcspn(at, ")") + 1;
            if (length + whole + 1 >= room)
                break;
            memcpy(out + length, at, whole);
            length += whole;
            at += whole - 1;
            continue;
        }
        if (!named && *at == '<')
            depth++;
        if (depth == 0 && !named && *at == '(')
            name_ended = true;
        else if (depth == 0)
            out[length++] = *at;
        if (!named && *at == '>' && depth > 0)
            depth--;
    }
    out[length] = 0;
    const char *result_type = strrchr(out, ' ');
    if (result_type != NULL && strstr(result_type, "namespace)") == NULL &&
        strstr(out, "operator ") == NULL)
        memmove(out, result_type + 1, strlen(result_type));
}

static void backward_title(const char *node, char *out, size_t room)
{
    snprintf(out, room, "%.*s in PyTorch's backward pass", (int)strcspn(node, ":"), node);
}

static void address_title(const struct vs_frame *frame, char *out, size_t room)
{
    if (frame->module == NULL)
        snprintf(out, room, "0x%" PRIx64, frame->address);
    else
        snprintf(out, room, "%s+0x%" PRIx64, base_name(frame->module), frame->address);
}

static void native_title(const struct vs_frame *frame, enum vs_group_by by, char *out, size_t room)
{
    char function[NAME_ROOM];
    const char *node = vs_frame_backward_node(frame);
    const char *module = frame->module == NULL ? "no module" : base_name(frame->module);
    if (by == VS_BY_MODULE) {
        snprintf(out, room, "%s", module);
        return;
    }
    if (frame->function == NULL) {
        address_title(frame, out, room);
        return;
    }
    if (node != NULL) {
        backward_title(node, out, room);
        return;
    }
    short_function(frame->function, function, sizeof(function));
    if (by != VS_BY_FUNCTION && frame->file != NULL && frame->line != 0)
        snprintf(out, room, "%s:%" PRIu32 " in %s", base_name(frame->file), frame->line, function);
    else
        snprintf(out, room, "%s in %s", function, module);
}

static void python_title(const struct report *report, const struct vs_frame *frame,
                         enum vs_group_by by, char *out, size_t room)
{
    const char *file = python_file(report, frame->file);
    const char *function = frame->function == NULL ? "?" : frame->function;
    if (by == VS_BY_MODULE)
        snprintf(out, room, "%s", file);
    else if (by == VS_BY_FUNCTION || frame->line == 0)
        snprintf(out, room, "%s in %s", function, file);
    else
        snprintf(out, room, "%s:%" PRIu32 " in %s", file, frame->line, function);
}

void report_frame_title(const struct report *report, const struct vs_frame *frame,
                        enum vs_group_by by, char *out, size_t room)
{
    if (frame->kind == VS_FRAME_PYTHON)
        python_title(report, frame, by, out, room);
    else if (frame->kind == VS_FRAME_NATIVE)
        native_title(frame, by, out, room);
    else
        snprintf(out, room, "(%s)", frame->function);
}

/* ---- names of places ------------------------------------------------------------------ */

static void call_title(const struct vs_summary *summary, const struct vs_site *site, char *out,
                       size_t room)
{
    const char *call = vs_state_string(summary->state, site->label);
    if (site->kind == VS_SITE_BEFORE_RECORDING)
        snprintf(out, room, "live before recording began");
    else if (site->kind == VS_SITE_UNCERTAIN)
        snprintf(out, room, "not accounted for by calls (lost, or not yet freed by the driver)");
    else if (site->layer == VS_LAYER_FRAMEWORK)
        snprintf(out, room, "blocks of %s", report_owner_title(summary, site->owner));
    else
        snprintf(out, room, "%s by %s%s", call[0] != 0 ? call : "unknown call",
                 vs_state_owner_name(summary->state, site->owner),
                 site->segment ? ", segments of its cache" : "");
}

struct report_stack report_stack_of(const struct report *report, const struct vs_place *place)
{
    struct report_stack stack = {.named = -1};
    if (place == NULL || !place->has_stack)
        return stack;
    stack.count = vs_places_frames(report->places, place, &stack.frames);
    if (stack.count > 0)
        stack.named = vs_places_frame(stack.frames, (size_t)stack.count);
    return stack;
}

void report_place_title(const struct report *report, const struct vs_place *place,
                        enum vs_group_by by, char *out, size_t room)
{
    struct report_stack stack = report_stack_of(report, place);
    if (stack.named >= 0)
        report_frame_title(report, &stack.frames[stack.named], by, out, room);
    else
        call_title(report->summary, vs_places_site(report->places, place), out, room);
}

struct page_text report_by(const struct report *report, uint32_t site)
{
    const struct vs_place *place = vs_places_of(report->places, site);
    char title[NAME_ROOM];
    if (place == NULL || !place->has_stack)
        return (struct page_text){{0}};
    report_place_title(report, place, VS_BY_LINE, title, sizeof(title));
    return page_fit(title, PAGE_WIDTH - 20);
}

/* ---- folded ----------------------------------------------------------------------------- */

/* Remarks on native frames, and that a thread runs no Python, are of interest in full only. */
static bool is_remark(const struct vs_frame *frame)
{
    if (frame->kind != VS_FRAME_NOTE)
        return false;
    switch ((enum vs_stack_note)frame->address) {
    case VS_STACK_NOTE_NATIVE_CUT:
    case VS_STACK_NOTE_NATIVE_STOPPED:
    case VS_STACK_NOTE_PYTHON_NO_FRAME:
        return false;
    default:
        return true;
    }
}

/* Linked into every program, and no line of it. */
static bool is_start(const struct vs_frame *frame)
{
    return frame->kind == VS_FRAME_NATIVE && frame->function != NULL &&
           strcmp(frame->function, "_start") == 0;
}

static bool is_shown(const struct report_stack *stack, long index)
{
    const struct vs_frame *frame = &stack->frames[index];
    return index == stack->named || is_remark(frame) ||
           (vs_frame_is_own(frame) && !is_start(frame));
}

/* The interpreter between two Python frames. */
static bool is_interpreter(const struct vs_frame *frame)
{
    const char *module = frame->module == NULL ? "" : base_name(frame->module);
    return frame->kind == VS_FRAME_NATIVE &&
           (strncmp(module, "libpython", 9) == 0 || strncmp(module, "python", 6) == 0);
}

/* Worth a word in a run. */
static bool is_counted(const struct vs_frame *frame)
{
    return frame->kind != VS_FRAME_NOTE && !is_interpreter(frame);
}

/* A run of frames that are not the program's own. */
struct run {
    long count;
    const char *origins[ORIGINS]; /* folder or file of Python code, module of native code */
    size_t lengths[ORIGINS];
    size_t different;
};

static void add_origin(struct run *run, const char *text, size_t length)
{
    for (size_t i = 0; i < run->different && i < ORIGINS; i++)
        if (run->lengths[i] == length && strncmp(run->origins[i], text, length) == 0)
            return;
    if (run->different < ORIGINS) {
        run->origins[run->different] = text;
        run->lengths[run->different] = length;
    }
    run->different++;
}

static void note_origin(const struct report *report, struct run *run, const struct vs_frame *frame)
{
    const char *path = frame->module == NULL ? "code of no module" : base_name(frame->module);
    size_t length = strlen(path);
    if (frame->kind == VS_FRAME_PYTHON) {
        path = python_file(report, frame->file);
        const char *slash = strrchr(path, '/');
        length = slash == NULL ? strlen(path) : (size_t)(slash - path);
    }
    add_origin(run, path, length);
}

/* What is nearest to the program's own code first, Python before native code. */
static struct run describe_run(const struct report *report, const struct vs_frame *frames,
                               long count)
{
    struct run run = {0};
    for (long i = 0; i < count; i++)
        run.count += is_counted(&frames[i]);
    for (long i = count; i-- > 0;)
        if (frames[i].kind == VS_FRAME_PYTHON)
            note_origin(report, &run, &frames[i]);
    for (long i = count; i-- > 0;)
        if (frames[i].kind == VS_FRAME_NATIVE && is_counted(&frames[i]))
            note_origin(report, &run, &frames[i]);
    return run;
}

static void print_run(const struct page *page, const struct report *report, int indent,
                      const struct vs_frame *frames, long count)
{
    struct run run = describe_run(report, frames, count);
    if (run.count == 0)
        return;
    fprintf(page->out, "%*s… %ld frame%s in ", indent, "", run.count, plural((uint64_t)run.count));
    for (size_t i = 0; i < run.different && i < ORIGINS; i++)
        fprintf(page->out, "%s%.*s", i == 0 ? "" : ", ", (int)run.lengths[i], run.origins[i]);
    fputs(run.different > ORIGINS ? " …\n" : "\n", page->out);
}

/*
 * Native frames of libraries inside all others are the way to the allocator,
 * those outside of all others how a thread or the interpreter starts: every
 * stack has them, and they say nothing.
 */
static bool is_common(const struct report_stack *stack, long index)
{
    return stack->frames[index].kind != VS_FRAME_PYTHON && !is_shown(stack, index);
}

/* `titled`: the line that the place is named after stands above already. */
static void print_folded(const struct page *page, const struct report *report, int indent,
                         const struct report_stack *stack, bool titled)
{
    long count = stack->count, first = 0;
    while (count > 0 && is_common(stack, count - 1))
        count--;
    while (first < count && is_common(stack, first))
        first++;
    if (titled && first == stack->named)
        first++;
    for (long i = first; i < count; i++) {
        char title[NAME_ROOM];
        if (!is_shown(stack, i))
            continue;
        if (i > first)
            print_run(page, report, indent, stack->frames + first, i - first);
        first = i + 1;
        report_frame_title(report, &stack->frames[i], VS_BY_LINE, title, sizeof(title));
        fprintf(page->out, "%*s%s\n", indent, "",
                page_fit(title, (size_t)(PAGE_WIDTH - indent)).text);
    }
    if (count > first)
        print_run(page, report, indent, stack->frames + first, count - first);
}

/* ---- in full ----------------------------------------------------------------------------- */

static void print_frame(const struct page *page, int indent, const struct vs_frame *frame)
{
    char address[NAME_ROOM];
    fprintf(page->out, "%*s", indent, "");
    if (frame->kind == VS_FRAME_NOTE) {
        fprintf(page->out, "(%s)\n", frame->function);
        return;
    }
    address_title(frame, address, sizeof(address));
    fputs(frame->function != NULL          ? frame->function
          : frame->kind == VS_FRAME_PYTHON ? "?"
                                           : address,
          page->out);
    if (frame->file != NULL)
        fprintf(page->out, " at %s:%" PRIu32, frame->file, frame->line);
    if (frame->module != NULL && frame->function != NULL)
        fprintf(page->out, " in %s", frame->module);
    fputs(frame->inlined ? " (inlined)\n" : "\n", page->out);
}

void report_print_stack(const struct page *page, const struct report *report, int indent,
                        const struct vs_place *place, bool titled)
{
    struct report_stack stack = report_stack_of(report, place);
    if (!report->options->full)
        print_folded(page, report, indent, &stack, titled);
    for (long i = 0; i < stack.count && report->options->full; i++)
        print_frame(page, indent, &stack.frames[i]);
}

void report_print_by(const struct page *page, const struct report *report, int indent,
                     uint32_t site)
{
    struct page_text by = report_by(report, site);
    if (by.text[0] == 0)
        return;
    fprintf(page->out, "%*sby %s\n", indent, "", by.text);
    report_print_stack(page, report, indent + 4, vs_places_of(report->places, site), true);
}
