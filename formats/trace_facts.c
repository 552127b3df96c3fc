/* SPDX-License-Identifier: Apache-2.0 */
/* Facts laid over each other: see trace_facts.h. */
#include "trace_facts.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

void vs_facts_free(struct vs_facts *facts)
{
    json_decref(facts->objects);
    *facts = (struct vs_facts){0};
}

int vs_facts_lay(struct vs_facts *facts, const char *name, const char *json, size_t bytes)
{
    json_t *object = json_loadb(json, bytes, 0, NULL);
    int error = -EINVAL;
    if (facts->objects == NULL)
        facts->objects = json_object();
    if (!json_is_object(object) || facts->objects == NULL)
        goto out;
    json_t *known = json_object_get(facts->objects, name);
    error = known != NULL ? json_object_update(known, object)
                          : json_object_set(facts->objects, name, object);
    error = error != 0 ? -ENOMEM : 0;
    facts->changed = facts->changed || error == 0;
out:
    json_decref(object);
    return error;
}

int vs_facts_rows(struct vs_facts *facts, struct vs_table *table)
{
    const char *name;
    json_t *object;
    vs_table_clear(table);
    json_object_foreach((json_t *)facts->objects, name, object)
    {
        char *text = json_dumps(object, JSON_COMPACT);
        if (text == NULL)
            return -ENOMEM;
        struct vs_table_row row = {.texts = {{name, strlen(name)}, {text, strlen(text)}}};
        int error = vs_table_add(table, &row);
        free(text);
        if (error != 0)
            return error;
    }
    facts->changed = false;
    return 0;
}
