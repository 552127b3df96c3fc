/* SPDX-License-Identifier: Apache-2.0 */
/* Files that commands make: see output_file.h. */
#include "output_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define USUAL_MODE 0666U /* less the umask, as for a file made by open */

static bool tell(const struct output_file *output, int why)
{
    fprintf(stderr, "vramscope: cannot write %s: %s\n", output->path, strerror(why));
    return false;
}

bool output_open(const char *path, bool force, struct output_file *output)
{
    struct stat found;
    *output = (struct output_file){path, NULL, -1};
    if (!force && lstat(path, &found) == 0) {
        fprintf(stderr, "vramscope: %s is there already: give another name, or --force\n", path);
        return false;
    }
    if (asprintf(&output->partial, "%s.XXXXXX", path) < 0) {
        output->partial = NULL;
        return tell(output, ENOMEM);
    }
    output->fd = mkstemp(output->partial);
    if (output->fd >= 0)
        return true;
    tell(output, errno);
    free(output->partial);
    return false;
}

bool output_keep(struct output_file *output)
{
    mode_t mask = umask(0);
    umask(mask);
    bool kept = fchmod(output->fd, USUAL_MODE & ~mask) == 0 && fsync(output->fd) == 0 &&
                rename(output->partial, output->path) == 0;
    if (!kept) {
        tell(output, errno);
        output_discard(output);
        return false;
    }
    close(output->fd);
    free(output->partial);
    return true;
}

void output_discard(struct output_file *output)
{
    unlink(output->partial);
    close(output->fd);
    free(output->partial);
}
