/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `vramscope env` writes into other languages: quoted text, the settings of this
 * environment that go along, and where this program is.
 */
#ifndef VS_CLI_ENV_TEXT_H
#define VS_CLI_ENV_TEXT_H

#include <stddef.h>
#include <stdio.h>

enum { ENV_SETTINGS_MAX = 32 };

/* VRAMSCOPE_* of this process's environment but for the output and the collector, by name. */
struct env_settings {
    size_t count;
    char name[ENV_SETTINGS_MAX][64];
    const char *value[ENV_SETTINGS_MAX];
};

void env_settings_find(struct env_settings *out);

/* As one word of a POSIX shell: bare where nothing in it means something to one. */
void env_put_shell(FILE *out, const char *text);
/* The three in a row, as one word. */
void env_put_shell_path(FILE *out, const char *text, const char *between, const char *rest);
/* The three in a row, between double quotes, as Python and YAML both read it. */
void env_put_quoted(FILE *out, const char *text, const char *between, const char *rest);

/* The folder that holds the bin/ of this program. Returns 0 or a negative errno value. */
int env_program_prefix(char *out, size_t out_bytes);

#endif
