/* SPDX-License-Identifier: Apache-2.0 */
/* For `vramscope pack`: redacted copies, in the folder for passing files. */
#ifndef VS_CLI_PACK_COPIES_H
#define VS_CLI_PACK_COPIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report.h"
#include "zip_file.h"

/* What the copy is called in messages. */
extern const char pack_copy_name[];

/* A file that the caller removes. False with a line on stderr; *path is to be freed in any case. */
bool pack_room(char **path, int *fd);

/* The other traces of a folder that go into the archive. Begins as zeros. */
struct pack_copies {
    struct zip_member *members;
    size_t count;
    size_t left_out; /* they did not fit */
    bool all_whole;  /* every trace was read to its end */
};

/*
 * Copies the traces of `from`, redacted, as members with the names of `named` (which stay), as
 * long as they fit into `room_bytes` together; a smaller one may fit where a larger one did not.
 * False with a line on stderr. Release it in any case.
 */
bool pack_copies_make(struct pack_copies *copies, const struct report_other *from,
                      const struct report_others *named, uint64_t room_bytes);
void pack_copies_release(struct pack_copies *copies);

#endif
