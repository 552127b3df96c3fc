/* SPDX-License-Identifier: Apache-2.0 */
/* Redacted copies for an archive: see pack_copies.h. */
#include "pack_copies.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "output_file.h"
#include "redact_trace.h"

const char pack_copy_name[] = "the copy in the folder that TMPDIR names";

bool pack_room(char **path, int *fd)
{
    const char *folder = getenv("TMPDIR");
    *fd = -1;
    if (asprintf(path, "%s/vramscope-pack-XXXXXX",
                 folder != NULL && folder[0] != 0 ? folder : P_tmpdir) < 0)
        *path = NULL;
    else
        *fd = mkstemp(*path);
    if (*fd < 0)
        output_complain_of_copy(errno);
    return *fd >= 0;
}

/* The file goes away with its descriptor, which is the member's. */
static bool copy_one(struct pack_copies *copies, const char *from, const char *name,
                     struct zip_member *member)
{
    struct vs_redacted redacted;
    char *path = NULL;
    int fd;
    bool whole = true, made = false;
    if (pack_room(&path, &fd)) {
        unlink(path);
        made = redact_trace(from, pack_copy_name, fd, &redacted, &whole);
        int error = made ? zip_store(name, fd, redacted.bytes, member) : 0;
        if (error != 0)
            fprintf(stderr, "vramscope: %s: %s\n", from, strerror(-error));
        made = made && error == 0;
        if (!made)
            close(fd);
    }
    free(path);
    copies->all_whole = copies->all_whole && whole;
    return made;
}

bool pack_copies_make(struct pack_copies *copies, const struct report_other *from,
                      const struct report_others *named, uint64_t room_bytes)
{
    *copies = (struct pack_copies){.members = calloc(named->count + 1, sizeof(struct zip_member)),
                                   .all_whole = true};
    if (copies->members == NULL) {
        fprintf(stderr, "vramscope: %s\n", strerror(ENOMEM));
        return false;
    }
    uint64_t empty = zip_bytes(copies->members, 0);
    for (size_t i = 0; i < named->count; i++) {
        struct zip_member *member = &copies->members[copies->count];
        if (!copy_one(copies, from[i].path, named->items[i].path, member))
            return false;
        if (zip_bytes(copies->members, ++copies->count) - empty > room_bytes) {
            copies->count--;
            copies->left_out++;
            close(member->fd);
        }
    }
    return true;
}

void pack_copies_release(struct pack_copies *copies)
{
    for (size_t i = 0; i < copies->count; i++)
        close(copies->members[i].fd);
    free(copies->members);
    *copies = (struct pack_copies){0};
}
