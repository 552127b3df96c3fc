/* SPDX-License-Identifier: Apache-2.0 */
/* Names and facts of a trace for the fold: see reader_facts.h. */
#include "reader_facts.h"

static const char *string_of(const void *self, uint32_t id)
{
    return vs_reader_string(self, id);
}

static const char *module_path_of(const void *self, uint32_t id)
{
    const struct vs_module_def *module = id == 0 ? NULL : vs_reader_module(self, id);
    return module == NULL ? NULL : module->path;
}

struct vs_names vs_reader_names(const struct vs_reader *reader)
{
    return (struct vs_names){reader, string_of, module_path_of};
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
