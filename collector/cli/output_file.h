/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that a command makes: written under a temporary name in the same folder,
 * and given its own name when it is whole, so that nobody ever sees half of it.
 * It is removed on failure and on an interrupt. "-" is stdout.
 */
#ifndef VS_CLI_OUTPUT_FILE_H
#define VS_CLI_OUTPUT_FILE_H

#include <stdbool.h>

struct output_file {
    const char *path; /* asked for; "stdout" for "-" */
    char *temporary;  /* NULL: stdout itself */
    bool to_stdout, force;
    int fd; /* for reading too, but for stdout itself */
};

/*
 * Opens it; `own_file`: for a format that writes a file by itself, also when it goes
 * to stdout in the end. False with a line on stderr.
 */
bool output_open(struct output_file *output, const char *path, bool force, bool own_file);
/*
 * Whether it leaves `source` alone, the trace that is read: --force is never to cost a recording.
 * False with a line on stderr.
 */
bool output_spares(const char *path, const char *source);
/* Whether it can be opened, as far as can be told before. False with a line on stderr. */
bool output_check(const char *path, bool force);
/* Gives the file its name, or copies it to stdout. False with a line on stderr. */
bool output_keep(struct output_file *output);
/* The line on stderr about a file that could not be made: which, why (an errno), what to do. */
void output_complain(const char *path, int error);
/* The same about a copy that is only passed on, in the folder for temporary files. */
void output_complain_of_copy(int error);
/* Removes what was written; nothing after a finish. */
void output_discard(struct output_file *output);

#endif
