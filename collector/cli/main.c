/* SPDX-License-Identifier: Apache-2.0 */
/* vramscope: the command people type. The sub-commands are one table. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "complete.h"
#include "trace_argument.h"

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

static int run(const struct command *command, int argc, char **argv)
{
    bool starts_programs = command->run == cmd_run || command->run == cmd_doctor;
    if (!starts_programs)         /* they would inherit it */
        signal(SIGXFSZ, SIG_IGN); /* a limit on files is an error of the write, as a full disk is */
    int status = command->run(argc, argv);
    return command->run == cmd_run ? status : finish_output(status);
}

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static int no_command(const char *name)
{
    if (access(name, F_OK) == 0)
        fprintf(stderr, "vramscope: '%s' is no command; a trace is read by `vramscope report %s`\n",
                name, name);
    else
        fprintf(stderr, "vramscope: no command '%s'; `vramscope --help` lists them\n", name);
    return CMD_USAGE;
}

/* `vramscope help COMMAND` is `vramscope COMMAND --help`. */
static int help(const char *name)
{
    static char option[] = "--help";
    const struct command *command = find_command(name);
    if (command == NULL)
        return no_command(name);
    return run(command, 2, (char *[]){(char *)(uintptr_t)command->name, option, NULL});
}

/* `vramscope --complete WORD…`: argv[0] is the option. */
static int complete(int argc, char **argv)
{
    const struct command *command = argc > 2 ? find_command(argv[1]) : NULL;
    if (argc == 2 || (argc == 3 && strcmp(argv[1], "help") == 0)) {
        for (size_t i = 0; i < COMMANDS; i++)
            complete_offer(argv[argc - 1], commands[i].name, commands[i].summary);
        if (argc == 2)
            complete_offer(argv[1], "help", "what a command takes");
    }
    if (command == NULL)
        return finish_output(CMD_DONE);
    char *name = argv[1]; /* the command gets: its name, the option, its words */
    argv[1] = argv[0];
    argv[0] = name;
    return finish_output(run(command, argc, argv));
}

/*
 * The number of a closed stdout is not to go to a file that a command opens: what is printed would
 * land in it. Held by what cannot be written to, so that it still fails, and not passed on.
 */
static void hold_closed_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
}

int main(int argc, char **argv)
{
    hold_closed_streams();
    const char *name = argc > 1 ? argv[1] : NULL;
    if (name == NULL) {
        print_usage(stderr);
        return CMD_USAGE;
    }
    if (strcmp(name, COMPLETE_OPTION) == 0)
        return complete(argc - 1, argv + 1);
    if (strcmp(name, "help") == 0 && argc > 2)
        return help(argv[2]);
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        print_usage(stdout);
        return finish_output(CMD_DONE);
    }
    if (strcmp(name, "--version") == 0) {
        puts("vramscope " VS_VERSION);
        return finish_output(CMD_DONE);
    }
    const struct command *command = find_command(name);
    return command == NULL ? no_command(name) : run(command, argc - 1, argv + 1);
}
