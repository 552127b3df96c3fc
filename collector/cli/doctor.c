/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `vramscope doctor`: which hooks take effect here, and why not. Everything it says
 * comes from traces, from ELF files and from /proc; nothing is asked of a running
 * program. Here are the arguments; the questions are in doctor_*.c.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arguments.h"
#include "commands.h"
#include "doctor_host.h"
#include "doctor_pid.h"
#include "doctor_run.h"

static const char usage[] =
    "usage: vramscope doctor [--all] [--pid N | -- COMMAND [ARGUMENT]…]\n"
    "\n"
    "Which hooks take effect here, and why not. Alone: the installation, preloading, CUDA\n"
    "libraries, the kernel, where traces go. With a command: runs it traced, and says which hooks\n"
    "took effect, how often, by which way, and why a process was not traced.\n"
    "\n"
    "  --pid N   a running process: is the shim in it, and would tracing have worked\n"
    "  --all     also the hooks that were not called\n"
    "\n"
    "Exit status: 0 nothing found, 1 something keeps memory events from being recorded, 2 usage.\n";

struct question {
    char **command; /* behind "--" */
    pid_t pid;
    bool all;
};

/* A positive number and nothing behind it, or 0. */
static pid_t parse_pid(const char *text)
{
    char *end = NULL;
    errno = 0;
    long value = strtol(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && value > 0 && value <= 0x7fffffff
               ? (pid_t)value
               : 0;
}

/* -1, or the exit status. */
static int parse(int argc, char **argv, struct question *question)
{
    const char *pid = NULL;
    const struct option_rule rules[] = {{"--all", &question->all, NULL}, {"--pid N", NULL, &pid}};
    const struct command_words known = {
        .help = usage, .rules = rules, .rule_count = 2, .command = &question->command};
    int status = parse_words(argc, argv, &known, NULL);
    if (status >= 0)
        return status;
    if (pid != NULL && (question->pid = parse_pid(pid)) == 0)
        fprintf(stderr, "vramscope doctor: --pid takes the number of a process, not '%s'\n", pid);
    else if (pid != NULL && question->command != NULL)
        fputs("vramscope doctor: --pid N or a command to run: one of them\n", stderr);
    else
        return -1;
    return CMD_USAGE;
}

static int ask(struct doctor *doctor, const struct question *question)
{
    if (question->command != NULL)
        return doctor_run(doctor, question->command);
    if (question->pid != 0)
        return doctor_pid(doctor, question->pid);
    return doctor_host(doctor);
}

int cmd_doctor(int argc, char **argv)
{
    struct question question = {0};
    int status = parse(argc, argv, &question);
    if (status >= 0)
        return status;
    struct doctor doctor = {.all = question.all};
    int error = ask(&doctor, &question);
    if (error == -ESRCH)
        fprintf(stderr, "vramscope doctor: there is no process %ld\n", (long)question.pid);
    else if (error == -EACCES)
        fprintf(stderr,
                "vramscope doctor: /proc of process %ld may not be read: try as "
                "its user "
                "or as root\n",
                (long)question.pid);
    else if (error != 0)
        fprintf(stderr, "vramscope doctor: %s\n", strerror(-error));
    else if (doctor.faults == 0)
        printf("nothing found that would keep memory events from being recorded\n");
    else
        printf("%u fault%s found\n", doctor.faults, doctor.faults == 1 ? "" : "s");
    return error != 0 || doctor.faults > 0 ? CMD_FAILED : CMD_DONE;
}
