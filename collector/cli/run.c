/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vramscope run: traces a command and everything it starts. It sets the
 * environment, runs the command as its child, waits until the command's trace is
 * whole, says in one line what there is to look at, and ends as the command did.
 */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arguments.h"
#include "commands.h"
#include "run_child.h"
#include "run_preload.h"
#include "run_traces.h"

static const char usage_text[] =
    "usage: vramscope run [OPTION]… -- COMMAND [ARGUMENT]…\n"
    "Traces the device memory of a command and of every process that it starts.\n"
    "\n"
    "  -o, --output PATTERN    file name pattern, or a folder (ends in /; made if need be): %e\n"
    "                          executable, %p pid, %h host, %r rank, %t start time, %% a percent\n"
    "                          sign\n"
    "      --stacks KINDS      native,python (default), native, python or none\n"
    "      --depth N           frames kept per kind (64)\n"
    "      --ring SIZE         size of the ring (16M)\n"
    "      --ring-at PLACE     memory (default) or file\n"
    "      --when-full WHAT    wait (default) or drop\n"
    "      --flush-ms N        longest time an event stays only in memory (250)\n"
    "      --exit-wait-ms N    longest wait at the program's end (500)\n"
    "      --time-ns N         resolution of the times kept (1)\n"
    "      --keep SIZE         bound on the trace's size (this version warns and keeps all)\n"
    "      --only GLOBS        trace only programs whose name matches\n"
    "      --private           hash host and paths outside site-packages while recording\n"
    "      --log LEVEL         error, warn (default), info or debug\n"
    "      --help              this text\n"
    "\n"
    "The exit status is the command's own; 127 when it is not found, 126 when it cannot be run.\n";

enum value_kind { VALUE_TEXT, VALUE_PATTERN, VALUE_COUNT, VALUE_SIZE, VALUE_NONE };

/* One option and the variable that carries it to the shim and the collector. */
struct run_option {
    const char *form; /* as in struct option_rule */
    const char *variable;
    enum value_kind kind;
};

static const struct run_option run_options[] = {
    {"-o PATTERN", "VRAMSCOPE_OUTPUT", VALUE_PATTERN},
    {"--output PATTERN", "VRAMSCOPE_OUTPUT", VALUE_PATTERN},
    {"--stacks native,python|python,native|native|python|none", "VRAMSCOPE_STACKS", VALUE_TEXT},
    {"--depth N", "VRAMSCOPE_DEPTH", VALUE_COUNT},
    {"--ring SIZE", "VRAMSCOPE_RING", VALUE_SIZE},
    {"--ring-at memory|file", "VRAMSCOPE_RING_AT", VALUE_TEXT},
    {"--when-full wait|drop", "VRAMSCOPE_WHEN_FULL", VALUE_TEXT},
    {"--flush-ms N", "VRAMSCOPE_FLUSH_MS", VALUE_COUNT},
    {"--exit-wait-ms N", "VRAMSCOPE_EXIT_WAIT_MS", VALUE_COUNT},
    {"--time-ns N", "VRAMSCOPE_TIME_NS", VALUE_COUNT},
    {"--keep SIZE", "VRAMSCOPE_KEEP", VALUE_SIZE},
    {"--only GLOBS", "VRAMSCOPE_ONLY", VALUE_TEXT},
    {"--private", "VRAMSCOPE_PRIVATE", VALUE_NONE},
    {"--log error|warn|info|debug", "VRAMSCOPE_LOG", VALUE_TEXT},
};
#define OPTION_COUNT (sizeof run_options / sizeof run_options[0])

static int fail(const char *what, const char *which, int error)
{
    fprintf(stderr, "vramscope run: %s %s: %s\n", what, which, strerror(-error));
    return CMD_FAILED;
}

/* ---- options ---------------------------------------------------------------------- */

static bool is_amount(const char *value, bool with_unit)
{
    size_t digits = strspn(value, "0123456789");
    const char *unit = value + digits;
    if (digits == 0)
        return false;
    if (with_unit && *unit && strchr("KMGTkmgt", *unit))
        unit++;
    return *unit == 0 || (with_unit && (strcmp(unit, "iB") == 0 || strcmp(unit, "B") == 0));
}

/* A letter that stands for nothing is a mistake better seen before a run of hours than after it. */
static bool is_pattern(const char *value)
{
    for (const char *at = strchr(value, '%'); at != NULL; at = strchr(at + 2, '%'))
        if (at[1] == 0 || strchr("ephrt%", at[1]) == NULL)
            return false;
    return *value != 0;
}

/* What an option takes; NULL when the value fits. */
static const char *why_not(const struct run_option *option, const char *value)
{
    switch (option->kind) {
    case VALUE_COUNT:
        return is_amount(value, false) ? NULL : "a number";
    case VALUE_SIZE:
        return is_amount(value, true) ? NULL : "a size such as 64K, 20M or 1G";
    case VALUE_PATTERN:
        return is_pattern(value) ? NULL : "a name with %e, %p, %h, %r, %t or %% in it, or none";
    case VALUE_TEXT:
    case VALUE_NONE:
    default:
        return *value != 0 ? NULL : "a text that is not empty";
    }
}

static int set_option(const struct run_option *option, const char *value)
{
    const char *takes = why_not(option, value);
    if (takes != NULL) {
        fprintf(stderr, "vramscope run: %.*s takes %s, not '%s'\n", (int)strcspn(option->form, " "),
                option->form, takes, value);
        return CMD_USAGE;
    }
    return setenv(option->variable, value, 1) < 0 ? fail("cannot set", option->variable, -errno)
                                                  : CMD_DONE;
}

/* -1 with the command (NULL: none), or the status to end with. */
static int read_options(int argc, char **argv, char ***command)
{
    const char *texts[OPTION_COUNT] = {NULL};
    bool given[OPTION_COUNT] = {false};
    struct option_rule rules[OPTION_COUNT];
    const struct command_words known = {
        .help = usage_text, .rules = rules, .rule_count = OPTION_COUNT, .command = command};
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        bool flag = run_options[i].kind == VALUE_NONE;
        rules[i] = (struct option_rule){run_options[i].form, flag ? &given[i] : NULL,
                                        flag ? NULL : &texts[i]};
    }
    int status = parse_words(argc, argv, &known, NULL);
    if (status >= 0)
        return status;
    status = CMD_DONE;
    for (size_t i = 0; i < OPTION_COUNT && status == CMD_DONE; i++)
        if (given[i] || texts[i] != NULL)
            status = set_option(&run_options[i], given[i] ? "1" : texts[i]);
    return status == CMD_DONE ? -1 : status;
}

/* ---- environment ------------------------------------------------------------------- */

/*
 * Makes the folders of `path`, as far as they are not patterns: a run of hours is not to lose its
 * trace for want of one. What cannot be made, the collector complains of.
 */
static void make_folders(const char *path)
{
    char part[PATH_MAX];
    size_t literal = strcspn(path, "%");
    for (size_t i = 1; i < literal; i++)
        if (path[i] == '/') {
            snprintf(part, sizeof part, "%.*s", (int)i, path);
            (void)mkdir(part, 0777);
        }
}

/* Absolute, so that processes that change directory write to the same place; a folder ends in '/'.
 */
static int set_output(void)
{
    char folder[PATH_MAX], path[PATH_MAX];
    struct stat what;
    const char *given = getenv("VRAMSCOPE_OUTPUT");
    if (!getcwd(folder, sizeof folder))
        return -errno;
    int bytes = !given || !*given ? snprintf(path, sizeof path, "%s/", folder)
                : *given == '/'   ? snprintf(path, sizeof path, "%s", given)
                                  : snprintf(path, sizeof path, "%s/%s", folder, given);
    if (bytes >= (int)sizeof path - 1)
        return -ENAMETOOLONG;
    if (path[bytes - 1] != '/' && stat(path, &what) == 0 && S_ISDIR(what.st_mode))
        memcpy(path + bytes, "/", 2);
    make_folders(path);
    return setenv("VRAMSCOPE_OUTPUT", path, 1) < 0 ? -errno : 0;
}

static int set_preload(void)
{
    char shim[PATH_MAX];
    int error = run_find_shim(shim, sizeof shim);
    if (error < 0) {
        fprintf(stderr, "vramscope run: " RUN_SHIM_NAME " is not beside this vramscope (../lib): "
                        "build or install it again\n");
        return CMD_FAILED;
    }
    const char *existing = getenv("LD_PRELOAD");
    size_t room = strlen(shim) + (existing ? strlen(existing) : 0) + 2;
    char *value = malloc(room);
    error = value ? run_preload_value(shim, existing, value, room) : -ENOMEM;
    if (error == 0 && setenv("LD_PRELOAD", value, 1) < 0)
        error = -errno;
    free(value);
    if (error == -EINVAL)
        fprintf(stderr,
                "vramscope run: LD_PRELOAD cannot hold a path with a blank or a colon: "
                "move %s elsewhere\n",
                shim);
    else if (error < 0)
        return fail("cannot preload", shim, error);
    return error < 0 ? CMD_FAILED : CMD_DONE;
}

static bool wants_only_errors(void)
{
    const char *level = getenv("VRAMSCOPE_LOG");
    return level && strcmp(level, "error") == 0;
}

/* ---- the run ------------------------------------------------------------------------- */

static void look_for_dropped(void *context, pid_t pid)
{
    struct run_dropped *dropped = context;
    if (!dropped->pid)
        run_find_dropped(pid, dropped);
}

static int say_not_started(const char *command, int error)
{
    fprintf(stderr, "vramscope run: cannot run %s: %s%s\n", command, strerror(-error),
            error == -ENOENT   ? ": check its name, and PATH"
            : error == -EACCES ? ": is it a program, and executable?"
                               : "");
    return error == -ENOENT ? RUN_NOT_FOUND : RUN_NOT_EXECUTABLE;
}

static void say_what_there_is(const struct run_traces *traces, const char *command,
                              const struct run_dropped *dropped, bool finished)
{
    char line[2 * PATH_MAX];
    if (wants_only_errors())
        return;
    run_traces_describe(traces, command, dropped, line, sizeof line);
    fprintf(stderr, "vramscope: %s%s\n", line,
            finished ? "" : " (its collector makes no progress; it was not waited for)");
}

static int run_command(char **command)
{
    struct run_traces traces;
    struct run_dropped dropped = {.pid = 0};
    char why[PATH_MAX + 128];
    pid_t pid;
    int error = run_traces_open(&traces);
    if (error < 0)
        return fail("give a folder that can be written to with -o: cannot make", traces.folder,
                    error);
    if (run_cannot_preload(command[0], why, sizeof why) && !wants_only_errors())
        fprintf(stderr, "vramscope: warning: it will not be traced: %s\n", why);
    error = run_child(command, &pid, look_for_dropped, &dropped);
    if (error < 0) {
        run_traces_close(&traces);
        return say_not_started(command[0], error);
    }
    bool finished = run_traces_wait(&traces, pid);
    int status = run_child_reap(pid);
    say_what_there_is(&traces, command[0], &dropped, finished);
    run_traces_close(&traces);
    run_child_end_like(status);
}

int cmd_run(int argc, char **argv)
{
    char **command = NULL;
    int status = read_options(argc, argv, &command);
    if (status >= 0)
        return status;
    if (command == NULL) {
        fputs("vramscope run: no command given: vramscope run -- COMMAND\n", stderr);
        return CMD_USAGE;
    }
    int error = set_output();
    if (error < 0)
        return fail("cannot use", "VRAMSCOPE_OUTPUT", error);
    status = set_preload();
    return status == CMD_DONE ? run_command(command) : status;
}
