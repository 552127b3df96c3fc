/* SPDX-License-Identifier: Apache-2.0 */
/* Text for shells, Python and YAML, and what of this environment goes along. */
#include "env_text.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OURS "VRAMSCOPE_"

/* ---- settings ------------------------------------------------------------------------ */

static bool goes_along(const char *entry, size_t name_bytes)
{
    /* What the shim reads but the output and the collector's path, which are set or found there. */
    static const char *const settings[] = {
        "DEPTH",   "DISABLE", "EXIT_WAIT_MS", "FLUSH_MS", "KEEP",   "LOG",     "ONLY",
        "PRIVATE", "RING",    "RING_AT",      "SAMPLE",   "STACKS", "TIME_NS", "WHEN_FULL"};
    size_t prefix_bytes = strlen(OURS);
    if (strncmp(entry, OURS, prefix_bytes) != 0)
        return false;
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        if (strlen(settings[i]) == name_bytes - prefix_bytes &&
            strncmp(entry + prefix_bytes, settings[i], name_bytes - prefix_bytes) == 0)
            return true;
    return false;
}

static int compare_entries(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

void env_settings_find(struct env_settings *out)
{
    const char *found[ENV_SETTINGS_MAX];
    size_t count = 0;
    for (char **entry = environ; *entry && count < ENV_SETTINGS_MAX; entry++) {
        const char *equals = strchr(*entry, '=');
        if (equals && goes_along(*entry, (size_t)(equals - *entry)))
            found[count++] = *entry;
    }
    qsort(found, count, sizeof found[0], compare_entries);
    out->count = count;
    for (size_t i = 0; i < count; i++) {
        size_t bytes = strcspn(found[i], "=");
        memcpy(out->name[i], found[i], bytes);
        out->name[i][bytes] = 0;
        out->value[i] = found[i] + bytes + 1;
    }
}

/* ---- quoted text ----------------------------------------------------------------------- */

static bool is_plain(const char *text)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789%+,-./:=@_";
    return text[strspn(text, plain)] == 0;
}

void env_put_shell_path(FILE *out, const char *text, const char *between, const char *rest)
{
    const char *const pieces[] = {text, between, rest};
    bool quoted =
        !is_plain(text) || !is_plain(between) || !is_plain(rest) || (!*text && !*between && !*rest);
    if (quoted)
        putc('\'', out);
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++)
        for (const char *at = pieces[i]; *at; at++)
            if (*at == '\'')
                fputs("'\\''", out);
            else
                putc(*at, out);
    if (quoted)
        putc('\'', out);
}

void env_put_shell(FILE *out, const char *text)
{
    env_put_shell_path(out, text, "", "");
}

void env_put_quoted(FILE *out, const char *text, const char *between, const char *rest)
{
    const char *const pieces[] = {text, between, rest};
    putc('"', out);
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++)
        for (const char *at = pieces[i]; *at; at++)
            if (*at == '"' || *at == '\\')
                fprintf(out, "\\%c", *at);
            else if ((unsigned char)*at < ' ')
                fprintf(out, "\\x%02x", (unsigned char)*at);
            else
                putc(*at, out);
    putc('"', out);
}

/* ---- this program ------------------------------------------------------------------------ */

int env_program_prefix(char *out, size_t out_bytes)
{
    char path[PATH_MAX];
    ssize_t bytes = readlink("/proc/self/exe", path, sizeof path - 1);
    if (bytes < 0)
        return -errno;
    path[bytes] = 0;
    for (int levels = 0; levels < 2; levels++) {
        char *slash = strrchr(path, '/');
        if (!slash)
            return -ENOENT;
        *slash = 0;
    }
    return snprintf(out, out_bytes, "%s", path) < (int)out_bytes ? 0 : -ENAMETOOLONG;
}
