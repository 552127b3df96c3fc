/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file an export goes to: written under a temporary name in the same folder,
 * and given its own name when it is whole, so that nobody ever sees half of it.
 * It is removed on failure and on an interrupt. "-" is stdout.
 */
#ifndef VS_CLI_EXPORT_OUTPUT_H
#define VS_CLI_EXPORT_OUTPUT_H

#include <stdbool.h>

struct export_output {
    const char *path; /* asked for */
    char *temporary;  /* NULL: stdout itself */
    bool to_stdout, force;
    int fd;
};

/*
 * Opens it; `own_file`: for a format that writes a file by itself, also when it goes
 * to stdout in the end. False with a line on stderr.
 */
bool export_output_open(struct export_output *output, const char *path, bool force, bool own_file);
/* Gives the file its name, or copies it to stdout. False with a line on stderr. */
bool export_output_finish(struct export_output *output);
/* Removes what was written; nothing after a finish. */
void export_output_drop(struct export_output *output);

#endif
