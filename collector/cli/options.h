/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What options a command has: one table each, which parses them (arguments.h), is checked
 * against, and answers the shells that complete words (complete.h).
 */
#ifndef VS_CLI_OPTIONS_H
#define VS_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * An option. `form` is what is typed: "--json" sets *value to true; after "--device N" the value
 * goes to *text, `--device=N` is the same. What it takes is one word or several with a '|' between:
 * in small letters a word of a fixed set, in capitals what stands for any; a set without such is
 * checked. OUT and FILE are files, DIR is a folder.
 */
struct option_rule {
    const char *form;
    bool *value;
    const char **text;
};

/* What a command takes. */
struct command_words {
    const char *help;
    const struct option_rule *rules;
    size_t rule_count;
    const char *argument; /* what the one argument is called ("trace"); NULL: there is none */
    bool optional;        /* it may be absent */
    char ***command;      /* not NULL: a command follows, after "--" or without */
};

/* Bytes of the name in an option's form, and what it takes ("": nothing). */
size_t option_name_bytes(const struct option_rule *rule);
const char *option_takes(const struct option_rule *rule);
/* The option that an argument is, also with "=VALUE" behind; NULL: none. */
const struct option_rule *option_find(const struct command_words *known, const char *argument);

#endif
