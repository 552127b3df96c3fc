/* SPDX-License-Identifier: Apache-2.0 */
/* Which Python files are installed ones: asked by the recorder's privacy and by the readers. */
#ifndef VS_FORMATS_PYTHON_PATH_H
#define VS_FORMATS_PYTHON_PATH_H

#include <stddef.h>
#include <string.h>

/* "/python3.11/" at `path`: the folder of a standard library, below lib or lib64. */
static inline int vs_is_python_folder(const char *path)
{
    static const char name[] = "/python";
    if (strncmp(path, name, sizeof name - 1) != 0)
        return 0;
    const char *at = path + sizeof name - 1;
    size_t digits = strspn(at, "0123456789.");
    return digits > 0 && at[digits + strspn(at + digits, "dtm")] == '/'; /* ABI flags */
}

/*
 * From where on a path is that of an installed package or of the standard
 * library ("/site-packages/torch/nn/…", "/lib/python3.11/threading.py"); NULL
 * when it is neither.
 */
static inline const char *vs_python_library_part(const char *path)
{
    static const char *const packages[] = {"/site-packages/", "/dist-packages/"};
    static const char *const libraries[] = {"/lib", "/lib64"};
    for (size_t i = 0; i < 2; i++) {
        const char *found = strstr(path, packages[i]);
        if (found != NULL)
            return found;
    }
    for (const char *at = strstr(path, "/lib"); at != NULL; at = strstr(at + 1, "/lib"))
        for (size_t i = 0; i < 2; i++)
            if (strncmp(at, libraries[i], strlen(libraries[i])) == 0 &&
                vs_is_python_folder(at + strlen(libraries[i])))
                return at;
    return NULL;
}

#endif
