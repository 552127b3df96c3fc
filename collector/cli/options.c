/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of options: see options.h. */
#include "options.h"

#include <string.h>

size_t option_name_bytes(const struct option_rule *rule)
{
    return strcspn(rule->form, " ");
}

const char *option_takes(const struct option_rule *rule)
{
    const char *takes = rule->form + option_name_bytes(rule);
    return takes + (*takes == ' ');
}

const struct option_rule *option_find(const struct command_words *known, const char *argument)
{
    size_t bytes = strcspn(argument, "=");
    for (size_t i = 0; i < known->rule_count; i++) {
        const struct option_rule *rule = &known->rules[i];
        bool whole = argument[bytes] == 0 || (rule->text != NULL && argument[1] == '-');
        if (whole && option_name_bytes(rule) == bytes && memcmp(rule->form, argument, bytes) == 0)
            return rule;
    }
    return NULL;
}
