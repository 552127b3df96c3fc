/* SPDX-License-Identifier: Apache-2.0 */
/* The traces beside the reported one: which of its folder are looked into. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "report.h"

/* A folder of a large job holds thousands; those of one machine are few. */
enum { LOOKED_AT_MOST = 256 };

static bool is_same_file(const char *a, const char *b)
{
    struct stat left, right;
    return stat(a, &left) == 0 && stat(b, &right) == 0 && left.st_dev == right.st_dev &&
           left.st_ino == right.st_ino;
}

static int add_all(const char *path, const struct report_folder *folder, size_t folder_bytes,
                   struct vs_summary *summary)
{
    struct vs_siblings *siblings = &summary->siblings;
    int result = 0;
    for (size_t i = 0; i < folder->path_count && result == 0; i++) {
        const char *other = folder->paths[i];
        if (is_same_file(path, other))
            continue;
        if (siblings->traces - siblings->ignored < LOOKED_AT_MOST) {
            result = vs_siblings_add(summary, other, other + folder_bytes);
        } else {
            siblings->traces++;
            siblings->ignored++;
        }
    }
    return result;
}

bool report_look_beside(const char *path, struct vs_summary *summary)
{
    struct report_folder folder = {0};
    if (!vs_siblings_wanted(summary))
        return true;
    const char *slash = strrchr(path, '/');
    char *place = slash == NULL ? strdup("./") : strndup(path, (size_t)(slash - path) + 1);
    int result = place == NULL ? -ENOMEM : report_list_traces(place, &folder);
    if (result == 0) {
        summary->siblings.looked = true;
        result = add_all(path, &folder, strlen(place), summary);
    } else if (result != -ENOMEM)
        result = 0; /* a trace that can be read in a folder that cannot: there is only it */
    report_release_folder(&folder);
    free(place);
    if (result != 0) {
        fprintf(stderr, "vramscope: %s: %s\n", path, strerror(-result));
        return false;
    }
    vs_siblings_explain(summary);
    return true;
}
