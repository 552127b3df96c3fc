/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that a command makes: it stands under its name only when it is whole, and
 * takes the place of another one only when that is wanted. One line on stderr says
 * what went wrong.
 */
#ifndef VS_CLI_OUTPUT_FILE_H
#define VS_CLI_OUTPUT_FILE_H

#include <stdbool.h>

struct output_file {
    const char *path;
    char *partial; /* its name until it is whole */
    int fd;        /* for reading and writing */
};

/* False with a line on stderr: something has that name (without `force`), or it cannot be made. */
bool output_open(const char *path, bool force, struct output_file *output);
/* Gives it its name. False with a line on stderr; nothing is left behind then. */
bool output_keep(struct output_file *output);
/* Leaves nothing behind. */
void output_discard(struct output_file *output);

#endif
