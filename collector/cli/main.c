/* SPDX-License-Identifier: Apache-2.0 */
/* vramscope: the command people type. The sub-commands are one table. */
#include <stdio.h>
#include <string.h>

#include "commands.h"

struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
};

#ifdef VS_READER_ONLY
static int only_reads(int argc, char **argv)
{
    (void)argc;
    fprintf(stderr,
            "vramscope %s: this build only reads traces: build without VS_READER_ONLY, on Linux\n",
            argv[0]);
    return CMD_FAILED;
}
#define cmd_run only_reads
#define cmd_doctor only_reads
#define cmd_env only_reads
#endif

static const struct command commands[] = {
    {"run", cmd_run, "run a program and record its device memory"},
    {"report", cmd_report, "how much at the peak, whose, when, how it ended, what was lost"},
    {"timeline", cmd_timeline, "the curves: CSV, JSON, or drawn in the terminal"},
    {"dump", cmd_dump, "the events, one a line"},
    {"verify", cmd_verify, "check a trace: integrity and invariants"},
    {"export", cmd_export, "for other tools: flame graphs, tables, viewers"},
    {"pack", cmd_pack, "one .zip for a bug report: redacted trace and reports"},
    {"redact", cmd_redact, "a copy of a trace that can be shown to strangers"},
    {"symbolize", cmd_symbolize, "name the native code of a trace later, or elsewhere"},
    {"explain", cmd_explain, "what a pasted out-of-memory message means, without a trace"},
    {"doctor", cmd_doctor, "which hooks take effect here, and why not"},
    {"env", cmd_env, "lines for a job script, a container or a cluster"},
};

enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static void print_usage(FILE *out)
{
    fputs("usage: vramscope COMMAND [OPTION …] [ARGUMENT …]\n"
          "\n"
          "Where did the GPU memory go? Records every device-memory event of a program\n"
          "and reads off the peak, the owners and the cause of an out-of-memory.\n"
          "\n",
          out);
    for (size_t i = 0; i < COMMANDS; i++)
        fprintf(out, "  %-10s%s\n", commands[i].name, commands[i].summary);
    fputs("\n"
          "`vramscope COMMAND --help` says more. Exit status: 0 done, 1 could not or found a\n"
          "fault, 2 usage.\n",
          out);
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : NULL;
    if (name == NULL) {
        print_usage(stderr);
        return CMD_USAGE;
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        print_usage(stdout);
        return CMD_DONE;
    }
    if (strcmp(name, "--version") == 0) {
        puts("vramscope " VS_VERSION);
        return CMD_DONE;
    }
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    fprintf(stderr, "vramscope: no command '%s'; `vramscope --help` lists them\n", name);
    return CMD_USAGE;
}
