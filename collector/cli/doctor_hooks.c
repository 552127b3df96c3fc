/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the traces of one run say of each hook: how often it was the innermost
 * call of an event and how often the outermost, who called, and by which way
 * the caller reached it. The list of hooks is the shim's own list of exports.
 */
#include "doctor_hooks.h"

#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor_elf.h"
#include "doctor_proc.h"
#include "trace.h"

enum { MAX_HOOKS = 2048, MAX_CALLERS = 256, CALLERS_PER_HOOK = 8 };

struct hook {
    char *name;
    uint64_t inner, outer; /* events in which it was the innermost, the outermost call */
    uint64_t failed;
    uint16_t callers[CALLERS_PER_HOOK]; /* of outermost calls: index into the book's callers + 1 */
};

/* A loaded object that called hooks. */
struct caller {
    char *path;
    uint64_t driver_calls; /* that it made itself, no runtime call around them */
};

struct hook_book {
    struct hook hooks[MAX_HOOKS];
    size_t hook_count;
    struct caller callers[MAX_CALLERS];
    size_t caller_count;
    uint64_t events;
};

static int add_hook(const char *name, bool defined, void *context)
{
    struct hook_book *book = context;
    bool entry_point = strncmp(name, "cuda", 4) == 0 ||
                       (strncmp(name, "cu", 2) == 0 && name[2] >= 'A' && name[2] <= 'Z') ||
                       strstr(name, "ToProfiler") != NULL;
    if (defined && entry_point && book->hook_count < MAX_HOOKS &&
        (book->hooks[book->hook_count].name = strdup(name)) != NULL)
        book->hook_count++;
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct hook *)a)->name, ((const struct hook *)b)->name);
}

static struct hook *find_hook(struct hook_book *book, const char *name)
{
    struct hook key = {.name = (char *)(uintptr_t)name};
    return name == NULL ? NULL : bsearch(&key, book->hooks, book->hook_count, sizeof(key), by_name);
}

/* Index of a caller + 1; 0 when there is no room or no name. */
static uint16_t find_caller(struct hook_book *book, const char *path)
{
    for (size_t i = 0; path != NULL && i < book->caller_count; i++)
        if (strcmp(book->callers[i].path, path) == 0)
            return (uint16_t)(i + 1);
    if (path == NULL || book->caller_count == MAX_CALLERS)
        return 0;
    char *copy = strdup(path);
    if (copy == NULL)
        return 0;
    book->callers[book->caller_count++].path = copy;
    return (uint16_t)book->caller_count;
}

static void add_caller(struct hook *hook, uint16_t caller)
{
    for (size_t i = 0; caller != 0 && i < CALLERS_PER_HOOK; i++) {
        if (hook->callers[i] == caller)
            return;
        if (hook->callers[i] == 0) {
            hook->callers[i] = caller;
            return;
        }
    }
}

static void count_event(struct hook_book *book, const struct vs_reader *reader,
                        const struct vs_event *event)
{
    struct hook *inner = find_hook(book, vs_reader_string(reader, event->call));
    struct hook *outer = find_hook(book, vs_reader_string(reader, event->label));
    const struct vs_module_def *module = vs_reader_module(reader, event->module);
    uint16_t caller = find_caller(book, module == NULL ? NULL : module->path);
    if (vs_kind_layer(event->kind) == 'M' && event->kind != VS_KIND_MEM_INFO)
        return;
    book->events++;
    if (inner != NULL) {
        inner->inner++;
        inner->failed += event->result != 0;
    }
    if (outer == NULL)
        return;
    outer->outer++;
    add_caller(outer, caller);
    bool driver = outer->name[2] >= 'A' && outer->name[2] <= 'Z';
    if (caller != 0 && driver && outer->name[0] == 'c')
        book->callers[caller - 1].driver_calls++;
}

/* How a caller reached a name: it asks for the symbol itself, or it looked it
 * up. */
static const char *way_of(const struct elf_file *file, const char *name)
{
    if (file->bytes == NULL)
        return "way unknown";
    return elf_has_symbol(file, name, false) ? "by symbol" : "by dlsym or cuGetProcAddress";
}

static void say_callers(const struct hook_book *book, const struct hook *hook)
{
    for (size_t i = 0; i < CALLERS_PER_HOOK && hook->callers[i] != 0; i++) {
        const char *path = book->callers[hook->callers[i] - 1].path;
        const char *slash = strrchr(path, '/');
        struct elf_file file;
        if (elf_open(path, &file) != 0)
            file = (struct elf_file){0};
        printf("%s %s (%s)", i == 0 ? "; from" : ",", slash == NULL ? path : slash + 1,
               way_of(&file, hook->name));
        elf_close(&file);
    }
}

static void say_hooks(const struct doctor *doctor, const struct hook_book *book)
{
    for (size_t i = 0; i < book->hook_count; i++) {
        const struct hook *hook = &book->hooks[i];
        if (hook->inner + hook->outer == 0) {
            if (doctor->all)
                printf("      %-44s not called\n", hook->name);
            continue;
        }
        uint64_t nested = hook->inner > hook->outer ? hook->inner - hook->outer : 0;
        printf("      %-44s %8llu called", hook->name,
               (unsigned long long)(hook->inner > hook->outer ? hook->inner : hook->outer));
        if (nested > 0)
            printf(", %llu of them inside another call", (unsigned long long)nested);
        if (hook->failed > 0)
            printf(", %llu failed", (unsigned long long)hook->failed);
        say_callers(book, hook);
        putchar('\n');
    }
}

static int mentions_runtime(const char *name, void *context)
{
    (void)context;
    return strncmp(name, "libcudart", 9) == 0;
}

/* A library that calls the driver itself and carries the runtime's error names.
 */
static void say_static_runtimes(struct doctor *doctor, const struct hook_book *book)
{
    for (size_t i = 0; i < book->caller_count; i++) {
        const struct caller *caller = &book->callers[i];
        struct elf_file file;
        const char *slash = strrchr(caller->path, '/');
        if (caller->driver_calls == 0 ||
            strncmp(slash == NULL ? caller->path : slash + 1, "libcudart", 9) == 0 ||
            elf_open(caller->path, &file) != 0)
            continue;
        bool carries = elf_holds(&file, "cudaErrorMemoryAllocation") &&
                       elf_each_needed(&file, mentions_runtime, NULL) == 0;
        if (carries)
            doctor_note(doctor,
                        "%s carries a runtime of its own (static cudart): %llu calls seen "
                        "at the driver",
                        caller->path, (unsigned long long)caller->driver_calls);
        elf_close(&file);
    }
}

static uint64_t figure(const json_t *object, const char *name)
{
    json_int_t value = json_integer_value(json_object_get(object, name));
    return value > 0 ? (uint64_t)value : 0;
}

/* By bit of "warning_bits" in the trace's "hooks" object (docs/hooks.md). */
static const char *const warnings[] = {
    "one entry point came from more libraries than can be told apart: the last were not hooked",
    "a hook was called for which no library has the real function: that call failed",
    "the program asked for memory calls this version does not know: they were not recorded",
    "the driver handed out a newer variant of a hooked call: it was not recorded",
    "a library was loaded with RTLD_DEEPBIND: what it binds to by itself bypasses the hooks",
};

/* Health of the hooks, as the recorder itself counted it. */
static void say_health(struct doctor *doctor, const struct vs_reader *reader)
{
    const char *text = vs_reader_meta(reader, "hooks");
    json_t *hooks = text == NULL ? NULL : json_loads(text, 0, NULL);
    uint64_t bits = figure(hooks, "warning_bits");
    if (figure(hooks, "lost") > 0)
        doctor_fault(doctor, "%llu events were lost: a larger VRAMSCOPE_RING keeps them",
                     (unsigned long long)figure(hooks, "lost"));
    if (figure(hooks, "missing_real") > 0)
        doctor_note(doctor,
                    "%llu calls went to the entry point found at the start: a CUDA library "
                    "was loaded in a way the shim did not see",
                    (unsigned long long)figure(hooks, "missing_real"));
    for (size_t i = 0; i < sizeof(warnings) / sizeof(warnings[0]); i++)
        if (bits >> i & 1)
            doctor_fault(doctor, "%s", warnings[i]);
    json_decref(hooks);
}

/* Which Python ran, and whether stacks can show its code. */
static void say_python(struct doctor *doctor, const struct vs_reader *reader)
{
    static const char prefix[] = "unsupported ";
    const char *text = vs_reader_meta(reader, "hooks");
    json_t *hooks = text == NULL ? NULL : json_loads(text, 0, NULL);
    const char *python = json_string_value(json_object_get(hooks, "python"));
    if (python != NULL && strncmp(python, prefix, sizeof(prefix) - 1) == 0)
        doctor_note(doctor, "Python %s is not one whose frames can be read: native stacks only",
                    python + sizeof(prefix) - 1);
    else if (python != NULL)
        doctor_ok(doctor, "Python %s: stacks show its frames", python);
    json_decref(hooks);
}

static void read_trace(struct doctor *doctor, struct hook_book *book, const char *path)
{
    struct vs_reader *reader = NULL;
    struct vs_error error;
    struct vs_sequenced_event event;
    if (vs_reader_open(path, &reader, &error) != 0) {
        doctor_fault(doctor, "%s", error.text);
        return;
    }
    uint64_t before = book->events;
    while (vs_reader_next(reader, &event) > 0)
        count_event(book, reader, &event.event);
    const char *name = strrchr(path, '/');
    doctor_ok(doctor, "trace %s: %llu events", name == NULL ? path : name + 1,
              (unsigned long long)(book->events - before));
    say_health(doctor, reader);
    say_python(doctor, reader);
    vs_reader_close(reader);
}

static void free_book(struct hook_book *book)
{
    for (size_t i = 0; i < book->hook_count; i++)
        free(book->hooks[i].name);
    for (size_t i = 0; i < book->caller_count; i++)
        free(book->callers[i].path);
    free(book);
}

static int read_folder(struct doctor *doctor, struct hook_book *book, const char *folder)
{
    int traces = 0;
    DIR *listing = opendir(folder);
    for (struct dirent *entry; listing != NULL && (entry = readdir(listing)) != NULL;) {
        size_t length = strlen(entry->d_name);
        size_t suffix = strlen(VS_TRACE_SUFFIX);
        char path[PROC_PATH_BYTES * 2];
        if (length <= suffix || strcmp(entry->d_name + length - suffix, VS_TRACE_SUFFIX) != 0)
            continue;
        snprintf(path, sizeof(path), "%s%s", folder, entry->d_name);
        read_trace(doctor, book, path);
        traces++;
    }
    if (listing != NULL)
        closedir(listing);
    return traces;
}

int doctor_hooks(struct doctor *doctor, const char *folder, const char *shim)
{
    struct elf_file file;
    struct hook_book *book = calloc(1, sizeof(*book));
    if (book == NULL)
        return 0;
    if (elf_open(shim, &file) == 0)
        elf_each_symbol(&file, add_hook, book);
    elf_close(&file);
    qsort(book->hooks, book->hook_count, sizeof(book->hooks[0]), by_name);
    int traces = read_folder(doctor, book, folder);
    size_t called = 0;
    for (size_t i = 0; i < book->hook_count; i++)
        called += book->hooks[i].inner + book->hooks[i].outer > 0;
    if (traces > 0) {
        doctor_note(doctor, "%zu of %zu hooks took effect%s", called, book->hook_count,
                    doctor->all ? ":" : " (--all lists the others too):");
        say_hooks(doctor, book);
        say_static_runtimes(doctor, book);
        if (book->events == 0)
            doctor_fault(doctor, "CUDA was started but no memory event reached a hook");
    }
    free_book(book);
    return traces;
}

/* ---- hooks that cannot take effect
 * ------------------------------------------------ */

enum { LISTED_NAMES = 6 };

struct unresolved {
    const struct elf_file *library;
    bool of_driver, all;
    unsigned missing;
    char names[1024];
};

static int look_for(const char *name, bool defined, void *context)
{
    struct unresolved *found = context;
    bool driver = strncmp(name, "cu", 2) == 0 && name[2] >= 'A' && name[2] <= 'Z';
    bool runtime = strncmp(name, "cuda", 4) == 0;
    if (!defined || !(found->of_driver ? driver : runtime) ||
        elf_has_symbol(found->library, name, true))
        return 0;
    size_t used = strlen(found->names);
    if (found->missing < LISTED_NAMES || found->all)
        snprintf(found->names + used, sizeof(found->names) - used, "%s%s",
                 found->missing == 0 ? "" : ", ", name);
    found->missing++;
    return 0;
}

static void say_unresolved(struct doctor *doctor, const struct elf_file *shim, const char *path,
                           bool of_driver)
{
    struct elf_file library;
    if (path == NULL) {
        doctor_note(doctor, "no CUDA %s was loaded as a library: its hooks by name stand idle",
                    of_driver ? "driver" : "runtime");
        return;
    }
    if (elf_open(path, &library) != 0)
        return;
    struct unresolved found = {.library = &library, .of_driver = of_driver, .all = doctor->all};
    elf_each_symbol(shim, look_for, &found);
    elf_close(&library);
    if (found.missing > 0)
        doctor_note(doctor, "%u hooks never resolve: %s has no %s%s", found.missing, path,
                    found.names, found.missing > LISTED_NAMES && !doctor->all ? ", …" : "");
}

void doctor_unresolved(struct doctor *doctor, const char *shim, const char *driver,
                       const char *runtime)
{
    struct elf_file file;
    if (elf_open(shim, &file) == 0) {
        say_unresolved(doctor, &file, driver, true);
        say_unresolved(doctor, &file, runtime, false);
    }
    elf_close(&file);
}
