/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `vramscope doctor`: which hooks take effect here, and why not. Arguments and
 * the lines on the screen; the questions are in doctor_*.c.
 */
#include "doctor.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"

static const char usage[] =
    "usage: vramscope doctor [--all] [--pid N | -- CMD …]\n"
    "  alone     the installation, preloading, CUDA libraries, the kernel, "
    "where traces go\n"
    "  -- CMD    runs CMD traced; says which hooks took effect, how often, by "
    "which way,\n"
    "            and why a process was not traced\n"
    "  --pid N   a running process: is the shim in it, and would tracing have "
    "worked\n"
    "  --all     also the hooks that were not called\n"
    "exit status: 0 nothing found, 1 something keeps memory events from being "
    "recorded, 2 usage\n";

static void print_line(const char *mark, const char *format, va_list arguments)
{
    printf("%-6s", mark);
    vprintf(format, arguments);
    putchar('\n');
}

void doctor_ok(struct doctor *doctor, const char *format, ...)
{
    va_list arguments;
    (void)doctor;
    va_start(arguments, format);
    print_line("ok", format, arguments);
    va_end(arguments);
}

void doctor_note(struct doctor *doctor, const char *format, ...)
{
    va_list arguments;
    (void)doctor;
    va_start(arguments, format);
    print_line("-", format, arguments);
    va_end(arguments);
}

void doctor_fault(struct doctor *doctor, const char *format, ...)
{
    va_list arguments;
    doctor->faults++;
    va_start(arguments, format);
    print_line("FAULT", format, arguments);
    va_end(arguments);
}

struct question {
    char **command; /* behind "--" */
    pid_t pid;
    bool all, help;
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

static int parse(int argc, char **argv, struct question *question)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            question->help = true;
        } else if (strcmp(argv[i], "--all") == 0) {
            question->all = true;
        } else if (strcmp(argv[i], "--pid") == 0 && i + 1 < argc) {
            question->pid = parse_pid(argv[++i]);
            if (question->pid == 0)
                return -EINVAL;
        } else if (strcmp(argv[i], "--") == 0 && i + 1 < argc) {
            question->command = argv + i + 1;
            return question->pid != 0 ? -EINVAL : 0;
        } else {
            return -EINVAL;
        }
    }
    return 0;
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
    if (parse(argc, argv, &question) != 0) {
        fputs(usage, stderr);
        return CMD_USAGE;
    }
    if (question.help) {
        fputs(usage, stdout);
        return CMD_DONE;
    }
    struct doctor doctor = {.all = question.all};
    int error = ask(&doctor, &question);
    if (error == -ESRCH)
        fprintf(stderr, "vramscope: doctor: there is no process %ld\n", (long)question.pid);
    else if (error == -EACCES)
        fprintf(stderr,
                "vramscope: doctor: /proc of process %ld may not be read: try as "
                "its user "
                "or as root\n",
                (long)question.pid);
    else if (error != 0)
        fprintf(stderr, "vramscope: doctor: %s\n", strerror(-error));
    else if (doctor.faults == 0)
        printf("nothing found that would keep memory events from being recorded\n");
    else
        printf("%u fault%s found\n", doctor.faults, doctor.faults == 1 ? "" : "s");
    return error != 0 || doctor.faults > 0 ? CMD_FAILED : CMD_DONE;
}
