/* SPDX-License-Identifier: Apache-2.0 */
/* Names and facts of a trace for the fold: see reader_facts.h. */
#include "reader_facts.h"

#include <stdlib.h>
#include <string.h>

#include "frame_word.h"

static const char *string_of(const void *self, uint32_t id)
{
    return vs_reader_string(self, id);
}

static const char *module_path_of(const void *self, uint32_t id)
{
    const struct vs_module_def *module = id == 0 ? NULL : vs_reader_module(self, id);
    return module == NULL ? NULL : module->path;
}

static const char *code_of(const void *self, uint32_t stack, unsigned index, const char **file)
{
    const struct vs_stack_def *of = vs_reader_stack(self, stack);
    for (uint32_t i = 0; of != NULL && i < of->frame_count; i++) {
        uint64_t word = of->frames[i];
        if (!vs_frame_is_interpreter(word) || vs_frame_note_of(word) != VS_STACK_NOTE_NONE ||
            index-- != 0)
            continue;
        const struct vs_code_def *code = vs_reader_code(self, vs_frame_code(word));
        *file = code == NULL ? "" : code->file;
        return code == NULL ? "" : code->name;
    }
    return NULL;
}

struct vs_names vs_reader_names(const struct vs_reader *reader)
{
    return (struct vs_names){reader, string_of, module_path_of, code_of};
}

json_t *vs_reader_fact(const struct vs_reader *reader, const char *name)
{
    const char *text = vs_reader_meta(reader, name);
    json_t *object = text == NULL ? NULL : json_loads(text, 0, NULL);
    if (json_is_object(object))
        return object;
    json_decref(object);
    return json_object();
}

uint64_t vs_fact_count(const json_t *object, const char *field)
{
    json_int_t value = json_integer_value(json_object_get(object, field));
    return value > 0 ? (uint64_t)value : 0;
}

const char *vs_fact_text(const json_t *object, const char *field)
{
    const char *text = json_string_value(json_object_get(object, field));
    return text == NULL ? "" : text;
}

bool vs_fact_ended_well(const json_t *end)
{
    const json_t *code = json_object_get(end, "exit_code");
    return strcmp(vs_fact_text(end, "ended"), "exit") == 0 && json_is_integer(code) &&
           json_integer_value(code) == 0;
}

static int tell_devices(const struct vs_reader *reader, struct vs_state *state)
{
    int result = 0;
    for (size_t i = 0; i < vs_reader_device_count(reader) && result == 0; i++) {
        const struct vs_device_def *device = vs_reader_device(reader, i);
        if (device->device >= INT8_MIN && device->device <= INT8_MAX)
            result = vs_state_device_total(state, (int8_t)device->device, device->total_bytes);
    }
    return result;
}

/* A size in MiB that one of PyTorch's settings has for `name`; UINT64_MAX without. */
static uint64_t setting_mib(const char *settings, const char *name)
{
    const char *found = strstr(settings, name);
    if (found == NULL || found[strlen(name)] != ':')
        return UINT64_MAX;
    char *end;
    const char *digits = found + strlen(name) + 1;
    unsigned long long mib = strtoull(digits, &end, 10);
    return end == digits || mib > UINT64_MAX >> 20 ? UINT64_MAX : (uint64_t)mib << 20;
}

/* The largest request that PyTorch's host cache rounds. */
static uint64_t host_round_limit(const json_t *process)
{
    static const char *const variables[] = {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"};
    static const char *const limits[] = {"pinned_max_round_threshold_mb",
                                         "pinned_max_cached_size_mb"};
    const json_t *settings = json_object_get(process, "settings");
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 4; i++) {
        uint64_t limit = setting_mib(vs_fact_text(settings, variables[i / 2]), limits[i % 2]);
        least = limit < least ? limit : least;
    }
    return least;
}

int vs_reader_prepare(const struct vs_reader *reader, struct vs_state *state)
{
    int result = tell_devices(reader, state);
    json_t *hooks = vs_reader_fact(reader, "hooks"), *clock = vs_reader_fact(reader, "clock"),
           *process = vs_reader_fact(reader, "process");
    bool others_known = strcmp(vs_fact_text(hooks, "nvml"), "ok") == 0;
    for (size_t i = 0; i < VS_DEVICE_SLOTS; i++)
        if (state->devices[i] != NULL)
            state->devices[i]->others_known = others_known;
    state->start_ns = vs_fact_count(json_object_get(clock, "start"), "monotonic_ns");
    state->own_pid = vs_fact_count(process, "host_pid");
    state->host_round_limit = host_round_limit(process);
    json_decref(hooks);
    json_decref(clock);
    json_decref(process);
    return result;
}
