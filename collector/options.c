/* SPDX-License-Identifier: Apache-2.0 */
/* Command line and environment of the collector. */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "rundir.h"

#define FLUSH_MS_DEFAULT 250U
#define FLUSH_MS_MAX 60000U
#define NS_PER_MS 1000000ULL
#define RESOLUTION_NS_MAX 1000000000ULL

/* A whole number between `least` and `most`, or `otherwise`. */
static uint64_t number_variable(const char *name, uint64_t least, uint64_t most, uint64_t otherwise)
{
    const char *text = getenv(name);
    char *end;
    if (!text || *text < '0' || *text > '9')
        return otherwise;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    return errno || *end || value < least || value > most ? otherwise : value;
}

static int take_option(struct options *options, int letter, const char *value)
{
    switch (letter) {
    case 'r':
        options->ring_fd = atoi(value);
        return 0;
    case 'd':
        options->pidfd = atoi(value);
        return 0;
    case 'p':
        options->pid = (uint32_t)strtoul(value, NULL, 10);
        return 0;
    case 'o':
        options->output = value;
        return 0;
    case 'f':
        options->ring_path = value;
        return 0;
    default:
        return -EINVAL;
    }
}

int options_read(struct options *options, int argc, char **argv)
{
    static const struct option known[] = {
        {"ring-fd", required_argument, NULL, 'r'},   {"pidfd", required_argument, NULL, 'd'},
        {"pid", required_argument, NULL, 'p'},       {"output", required_argument, NULL, 'o'},
        {"ring-path", required_argument, NULL, 'f'}, {NULL, 0, NULL, 0}};
    const char *hide = getenv("VRAMSCOPE_PRIVATE");
    memset(options, 0, sizeof *options);
    options->ring_fd = options->pidfd = -1;
    for (int letter; (letter = getopt_long(argc, argv, "", known, NULL)) != -1;)
        if (take_option(options, letter, optarg) < 0)
            return -EINVAL;
    options->flush_ns =
        number_variable("VRAMSCOPE_FLUSH_MS", 1, FLUSH_MS_MAX, FLUSH_MS_DEFAULT) * NS_PER_MS;
    options->resolution_ns = number_variable("VRAMSCOPE_TIME_NS", 1, RESOLUTION_NS_MAX, 1);
    options->hide = hide && strcmp(hide, "1") == 0;
    options->keep_wanted = getenv("VRAMSCOPE_KEEP") != NULL;
    options->run_dir = getenv(RUNDIR_VARIABLE);
    return options->ring_fd < 0 || options->pid == 0 || !options->output ? -EINVAL : 0;
}
