/* SPDX-License-Identifier: Apache-2.0 */
/* Words for a shell that completes: see complete.h. */
#include "complete.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"

enum { WORD_BYTES = 80 };

bool complete_asked(int argc, char **argv)
{
    return argc > 1 && strcmp(argv[1], COMPLETE_OPTION) == 0;
}

void complete_offer(const char *typed, const char *word, const char *means)
{
    if (strncmp(word, typed, strlen(typed)) != 0)
        return;
    fputs(word, stdout);
    if (means != NULL && means[0] != 0)
        printf("\t%s", means);
    putchar('\n');
}

/* ---- what an option means, as its help says ------------------------------------------------ */

/* Whether the head of a line of the help ("-o, --output PATTERN") names the option. */
static bool names(const char *head, const char *end, const char *name)
{
    size_t bytes = strlen(name);
    for (const char *at = head; at + bytes <= end; at++)
        if ((at == head || at[-1] == ' ') && memcmp(at, name, bytes) == 0 &&
            (at + bytes == end || strchr(" ,", at[bytes]) != NULL))
            return true;
    return false;
}

/* The first clause of what the help says of it, in `means`; "" when there is no such line. */
static void find_meaning(const char *help, const char *name, char *means, size_t room)
{
    means[0] = 0;
    for (const char *line = help; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *head = line + strspn(line, " ");
        if (head == line || *head != '-')
            continue;
        const char *end = strstr(head, "  ");
        size_t line_bytes = strcspn(line, "\n");
        if (end == NULL || end > line + line_bytes)
            end = line + line_bytes;
        if (!names(head, end, name))
            continue;
        const char *text = end + strspn(end, " \n");
        snprintf(means, room, "%.*s", (int)strcspn(text, "\n;"), text);
        return;
    }
}

/* ---- words ------------------------------------------------------------------------------------
 */

static void offer_option(const char *typed, const char *name, const char *help)
{
    char means[2 * WORD_BYTES];
    find_meaning(help, name, means, sizeof(means));
    complete_offer(typed, name, means);
}

static bool was_given(const struct command_words *known, const struct option_rule *rule, int count,
                      char **words)
{
    for (int i = 0; i < count; i++)
        if (words[i][0] == '-' && option_find(known, words[i]) == rule)
            return true;
    return false;
}

static void offer_options(const struct command_words *known, int count, char **words)
{
    const char *typed = words[count];
    char name[WORD_BYTES];
    for (size_t i = 0; i < known->rule_count; i++) {
        const struct option_rule *rule = &known->rules[i];
        snprintf(name, sizeof(name), "%.*s", (int)option_name_bytes(rule), rule->form);
        if (!was_given(known, rule, count, words))
            offer_option(typed, name, known->help);
    }
    offer_option(typed, "--help", known->help);
    if (known->command != NULL)
        complete_offer(typed, "--", "the command follows");
}

/* What an option takes. `before`: stands before the value in the same word ("--by="). */
static void offer_values(const struct option_rule *rule, const char *before, const char *typed)
{
    const char *word = option_takes(rule);
    char value[WORD_BYTES];
    if (strcmp(word, "OUT") == 0 || strcmp(word, "FILE") == 0 || strcmp(word, "PATTERN") == 0)
        puts(":files");
    else if (strcmp(word, "DIR") == 0)
        puts(":folders");
    while (*word != 0) {
        size_t bytes = strcspn(word, "|");
        snprintf(value, sizeof(value), "%s%.*s", before, (int)bytes, word);
        if (!isupper((unsigned char)*word))
            complete_offer(typed, value, NULL);
        word += bytes + (word[bytes] == '|');
    }
}

/* "--by=li": the word is the option and its value. */
static bool offer_joined(const struct command_words *known, const char *typed)
{
    const char *equals = strchr(typed, '=');
    const struct option_rule *rule = equals == NULL ? NULL : option_find(known, typed);
    char before[WORD_BYTES];
    if (rule == NULL)
        return false;
    snprintf(before, sizeof(before), "%.*s", (int)(equals + 1 - typed), typed);
    offer_values(rule, before, typed);
    return true;
}

static void offer_argument(const struct command_words *known)
{
    puts(known->command != NULL                  ? ":command"
         : strcmp(known->argument, "trace") == 0 ? ":traces"
                                                 : ":files");
}

int complete_words(int count, char **words, const struct command_words *known)
{
    bool given = false, options_over = false;
    const struct option_rule *rule = NULL;
    if (count == 0)
        return CMD_DONE;
    const char *typed = words[--count];
    for (int i = 0; i < count; i++) {
        const char *word = words[i];
        bool plain = options_over || word[0] != '-' || word[1] == 0;
        if (rule != NULL) { /* its value */
            rule = NULL;
        } else if (known->command != NULL && (plain || strcmp(word, "--") == 0)) {
            puts(":command");
            return CMD_DONE;
        } else if (plain) {
            given = true;
        } else if (strcmp(word, "--") == 0) {
            options_over = true;
        } else {
            rule = option_find(known, word);
            if (rule != NULL && (rule->text == NULL || strchr(word, '=') != NULL))
                rule = NULL;
        }
    }
    bool wanted = known->command != NULL || (known->argument != NULL && !given);
    if (rule != NULL)
        offer_values(rule, "", typed);
    else if (wanted && (typed[0] != '-' || options_over))
        offer_argument(known);
    else if (!options_over && !offer_joined(known, typed))
        offer_options(known, count, words);
    return CMD_DONE;
}
