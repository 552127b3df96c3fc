/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of the commands, by the table of what each takes. */
#ifndef VS_CLI_ARGUMENTS_H
#define VS_CLI_ARGUMENTS_H

#include "options.h"

/*
 * Takes the options out of argv, and gives the one argument (NULL: absent) or the command.
 * --help prints `help`. Returns -1 to go on, else the exit status.
 */
int parse_words(int argc, char **argv, const struct command_words *known, const char **argument);

/* The same for a command with one TRACE. */
int parse_arguments(int argc, char **argv, const char *help, const struct option_rule *rules,
                    size_t rule_count, const char **trace);

#endif
