/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments and input of the commands that read a trace. */
#include "trace_argument.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"

static const struct option_rule *find_rule(const struct option_rule *rules, size_t count,
                                           const char *argument)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(rules[i].name, argument) == 0)
            return &rules[i];
    return NULL;
}

static int usage(const char *command, const char *what, const char *argument)
{
    fprintf(stderr, "vramscope %s: %s%s; `vramscope %s --help` says how\n", command, what, argument,
            command);
    return CMD_USAGE;
}

int parse_arguments(int argc, char **argv, const char *help, const struct option_rule *rules,
                    size_t rule_count, const char **trace)
{
    bool options_over = false;
    *trace = NULL;
    for (int i = 1; i < argc; i++) {
        const char *argument = argv[i];
        if (options_over || argument[0] != '-' || argument[1] == 0) {
            if (*trace != NULL)
                return usage(argv[0], "one trace at a time, not also ", argument);
            *trace = argument;
            continue;
        }
        if (strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0) {
            fputs(help, stdout);
            return CMD_DONE;
        }
        if (strcmp(argument, "--") == 0) {
            options_over = true;
            continue;
        }
        const struct option_rule *rule = find_rule(rules, rule_count, argument);
        if (rule == NULL)
            return usage(argv[0], "unknown option ", argument);
        if (rule->value != NULL)
            *rule->value = true;
        if (rule->text != NULL && ++i == argc)
            return usage(argv[0], "a value is missing after ", argument);
        if (rule->text != NULL)
            *rule->text = argv[i];
    }
    return *trace == NULL ? usage(argv[0], "no trace given", "") : -1;
}

struct vs_summary *load_trace(const char *path, vs_timeline_row *row, void *row_self)
{
    struct vs_summary *summary = NULL;
    struct vs_error error = {{0}};
    if (vs_summary_load(path, row, row_self, &summary, &error) == 0)
        return summary;
    fprintf(stderr, "vramscope: %s\n", error.text);
    return NULL;
}

bool tell_damage(const char *path, const struct vs_trace_status *status, int read_error)
{
    bool truncated = status->truncated;
    bool damaged = status->damaged_chunks != 0 || status->damaged_bytes != 0;
    if (!truncated && !damaged && read_error == 0)
        return false;
    fprintf(stderr, "vramscope: %s: %s: %" PRIu64 " events could be read, the rest is missing\n",
            path,
            read_error != 0 ? strerror(-read_error)
            : damaged       ? "damaged"
                            : "cut off",
            status->events);
    return true;
}

int finish_output(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    if (errno != EPIPE)
        fprintf(stderr, "vramscope: could not write the output: %s\n", strerror(errno));
    return CMD_FAILED;
}
