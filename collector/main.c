/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vramscope-collector: beside one traced process, started by the shim as
 * shim/collector_start.h describes, never by a person.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "collect.h"

/* Not on the stack: it holds the table of losses. */
static struct collect collect;

/* What the shim sets up, once more for a collector that somebody else starts. */
static void settle(void)
{
    static const int ignored[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM, SIGPIPE, SIGXFSZ,
                                  SIGXCPU, SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2};
    static const struct rlimit no_core = {0, 0};
    for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++)
        signal(ignored[i], SIG_IGN);
    setrlimit(RLIMIT_CORE, &no_core); /* a core would hold the program's whole environment */
    if (chdir("/") < 0)
        return; /* then it stays where it is: output paths are absolute */
}

int main(int argc, char **argv)
{
    struct options options;
    settle();
    if (options_read(&options, argc, argv) < 0) {
        fputs("vramscope-collector is started by libvramscope.so; to trace a program: "
              "vramscope run -- PROGRAM\n",
              stderr);
        return 2;
    }
    int error = collect_open(&collect, &options, (const char *const *)environ);
    if (error < 0)
        return EXIT_FAILURE;
    collect_run(&collect);
    /* Not exit(): a thread may sit inside NVML, whose destructors would wait for it. */
    _exit(EXIT_SUCCESS);
}
