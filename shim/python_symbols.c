/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds a Python interpreter among the loaded objects: in libpython, in an
 * executable that contains it, or wherever an embedding program loaded it, in
 * the loader's global scope or not. The symbol tables are read directly, as for
 * every other real function (real_dl.h).
 */
#include "python_parts.h"

#include <link.h>

#include "elf_object.h"

/* Where to put what is found under a name. */
struct wanted {
    const char *name;
    void **place;
    bool data;
};

#define WANTED_MAX 24U

struct search {
    struct wanted wanted[WANTED_MAX];
    unsigned count;
};

static void want(struct search *search, const char *name, void *place, bool data)
{
    *(void **)place = NULL;
    search->wanted[search->count++] = (struct wanted){name, place, data};
}

static void want_for_reading(struct search *search, struct python_symbols *symbols)
{
    want(search, "PyCode_Type", &symbols->code_type, true);
    want(search, "PyUnicode_Type", &symbols->text_type, true);
    want(search, "PyBytes_Type", &symbols->bytes_type, true);
    want(search, "_PyRuntime", &symbols->runtime, true);
    want(search, "Py_Version", &symbols->version, true); /* from 3.11 on */
    want(search, "Py_GetVersion", &symbols->version_text, false);
    want(search, "PyGILState_GetThisThreadState", &symbols->thread_of_gil_state, false);
    /* Before 3.12 it names whoever holds the GIL. */
    want(search, "_PyThreadState_UncheckedGet", &symbols->thread_attached, false);
    want(search, "PyInterpreterState_Main", &symbols->main_interpreter, false);
    want(search, "Py_IsInitialized", &symbols->is_initialized, false);
    want(search, "_Py_IsFinalizing", &symbols->is_finalizing, false);
}

static void want_for_the_end(struct search *search, struct python_symbols *symbols)
{
    want(search, "Py_AddPendingCall", &symbols->add_pending_call, false);
    want(search, "PyInterpreterState_Get", &symbols->current_interpreter, false);
    want(search, "PyInterpreterState_GetDict", &symbols->interpreter_dictionary, false);
    want(search, "PyDict_GetItemString", &symbols->dictionary_get, false);
    want(search, "PyDict_SetItemString", &symbols->dictionary_set, false);
    want(search, "PyImport_ImportModule", &symbols->import_module, false);
    want(search, "PyCFunction_NewEx", &symbols->new_function, false);
    want(search, "PyObject_CallMethod", &symbols->call_method, false);
    want(search, "Py_BuildValue", &symbols->build_value, false);
    want(search, "Py_DecRef", &symbols->decrement, false);
    want(search, "PyErr_Clear", &symbols->clear_error, false);
}

static uint32_t gnu_hash(const char *name)
{
    uint32_t hash = 5381;
    for (const unsigned char *c = (const unsigned char *)name; *c != '\0'; c++) {
        hash = hash * 33 + *c;
    }
    return hash;
}

/* An executable may hold a copy of libpython's data: the first definition is the one in use. */
static int look_into(struct dl_phdr_info *info, size_t size, void *context)
{
    struct search *search = context;
    struct elf_object object;
    (void)size;

    if (!elf_object_open(&object, info)) {
        return 0;
    }
    for (unsigned i = 0; i < search->count; i++) {
        const struct wanted *wanted = &search->wanted[i];
        uint32_t hash = gnu_hash(wanted->name);
        const char *version;
        if (*wanted->place == NULL) {
            *wanted->place =
                (void *)(wanted->data ? elf_object_find_data(&object, wanted->name, hash)
                                      : elf_object_find(&object, wanted->name, hash, &version));
        }
    }
    return 0;
}

/* A name that one version has under another. */
static void find_other_name(const char *name, void *place)
{
    struct search search = {.count = 0};
    if (*(void **)place == NULL) {
        want(&search, name, place, false);
        dl_iterate_phdr(look_into, &search);
    }
}

bool python_symbols_find(struct python_symbols *symbols)
{
    struct search search = {.count = 0};
    want_for_reading(&search, symbols);
    want_for_the_end(&search, symbols);
    dl_iterate_phdr(look_into, &search);
    if (symbols->code_type == NULL || symbols->text_type == NULL || symbols->bytes_type == NULL ||
        symbols->version_text == NULL || symbols->thread_of_gil_state == NULL) {
        return false;
    }
    find_other_name("PyThreadState_GetUnchecked", &symbols->thread_attached);
    find_other_name("Py_IsFinalizing", &symbols->is_finalizing);
    find_other_name("_PyInterpreterState_Get", &symbols->current_interpreter);
    return true;
}

static const char *number(const char *text, uint32_t *value)
{
    *value = 0;
    while (*text >= '0' && *text <= '9' && *value < 256) {
        *value = *value * 10 + (uint32_t)(*text++ - '0');
    }
    return *text == '.' ? text + 1 : text;
}

/* "3.10.13 (main, …)" → 0x030a0df0; what is not a release (3.13.0rc2) says so in its last byte. */
static uint32_t version_of_text(const char *text)
{
    uint32_t major;
    uint32_t minor;
    uint32_t micro;
    uint32_t level = 0xf0;
    text = number(text, &major);
    text = number(text, &minor);
    text = number(text, &micro);
    if (*text == 'a' || *text == 'b') {
        level = *text == 'a' ? 0xa0 : 0xb0;
    } else if (*text == 'r') {
        level = 0xc0;
    }
    return major << 24 | minor << 16 | micro << 8 | level;
}

uint32_t python_symbols_version(const struct python_symbols *symbols)
{
    return symbols->version != NULL ? (uint32_t)*symbols->version
                                    : version_of_text(symbols->version_text());
}
