/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of the commands: see arguments.h. */
#include "arguments.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "complete.h"

static int usage(const char *command, const char *what, const char *argument)
{
    fprintf(stderr, "vramscope %s: %s%s; `vramscope %s --help` says how\n", command, what, argument,
            command);
    return CMD_USAGE;
}

/* ---- values ------------------------------------------------------------------------------ */

static bool is_fixed_set(const char *takes)
{
    return !isupper((unsigned char)takes[0]) && strpbrk(takes, "|") != NULL;
}

static bool is_in_set(const char *takes, const char *text)
{
    size_t bytes = strlen(text);
    for (const char *word = takes; *word != 0; word += strcspn(word, "|"), word += *word == '|')
        if (strcspn(word, "|") == bytes && memcmp(word, text, bytes) == 0)
            return true;
        else if (isupper((unsigned char)*word))
            return true;
    return false;
}

/* "--by takes line, function or stack, not 'x'" */
static int wrong_word(const char *command, const struct option_rule *rule, const char *text)
{
    fprintf(stderr, "vramscope %s: %.*s takes ", command, (int)option_name_bytes(rule), rule->form);
    const char *word = option_takes(rule);
    while (*word != 0) {
        size_t bytes = strcspn(word, "|");
        const char *next = word + bytes + (word[bytes] == '|');
        fprintf(stderr, "%.*s%s", (int)bytes, word,
                *next == 0                  ? ""
                : strchr(next, '|') == NULL ? " or "
                                            : ", ");
        word = next;
    }
    fprintf(stderr, ", not '%s'\n", text);
    return CMD_USAGE;
}

/* Takes the option at argv[*at]. -1, or the exit status after a line about it. */
static int take_option(const struct option_rule *rule, int argc, char **argv, int *at)
{
    size_t bytes = option_name_bytes(rule);
    const char *argument = argv[*at];
    if (rule->value != NULL)
        *rule->value = true;
    if (rule->text == NULL)
        return -1;
    if (argument[bytes] == '=') {
        *rule->text = argument + bytes + 1;
    } else if (++*at == argc) {
        return usage(argv[0], "a value is missing after ", argument);
    } else {
        *rule->text = argv[*at];
    }
    const char *takes = option_takes(rule);
    return is_fixed_set(takes) && !is_in_set(takes, *rule->text)
               ? wrong_word(argv[0], rule, *rule->text)
               : -1;
}

/* ---- the whole -------------------------------------------------------------------------- */

static int take_argument(const char *command, const struct command_words *known,
                         const char *argument, const char **taken)
{
    char what[64];
    if (known->argument == NULL)
        return usage(command, "it takes no argument, but was given ", argument);
    if (*taken != NULL) {
        snprintf(what, sizeof(what), "one %s at a time, not also ", known->argument);
        return usage(command, what, argument);
    }
    *taken = argument;
    return -1;
}

static int parse(int argc, char **argv, const struct command_words *known, const char **argument)
{
    bool options_over = false;
    int status = -1;
    for (int i = 1; i < argc && status < 0; i++) {
        const char *word = argv[i];
        const struct option_rule *rule;
        bool plain = options_over || word[0] != '-' || word[1] == 0;
        if (known->command != NULL && (plain || strcmp(word, "--") == 0)) {
            char **command = argv + i + !plain;
            *known->command = *command == NULL ? NULL : command;
            return -1;
        }
        if (plain)
            status = take_argument(argv[0], known, word, argument);
        else if (strcmp(word, "--") == 0)
            options_over = true;
        else if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
            status = fputs(known->help, stdout) < 0 ? CMD_FAILED : CMD_DONE;
        else if ((rule = option_find(known, word)) != NULL)
            status = take_option(rule, argc, argv, &i);
        else
            status = usage(argv[0], "unknown option ", word);
    }
    return status;
}

int parse_words(int argc, char **argv, const struct command_words *known, const char **argument)
{
    const char *found = NULL;
    char what[64];
    if (complete_asked(argc, argv))
        return complete_words(argc - 2, argv + 2, known);
    int status = parse(argc, argv, known, &found);
    if (argument != NULL)
        *argument = found;
    if (status >= 0 || known->argument == NULL || known->optional || found != NULL)
        return status;
    snprintf(what, sizeof(what), "no %s given", known->argument);
    return usage(argv[0], what, "");
}

int parse_arguments(int argc, char **argv, const char *help, const struct option_rule *rules,
                    size_t rule_count, const char **trace)
{
    const struct command_words known = {
        .help = help, .rules = rules, .rule_count = rule_count, .argument = "trace"};
    return parse_words(argc, argv, &known, trace);
}
