/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared memory that has a name in no process's books: the files in /dev/shm that a process
 * and its children have mapped or open. A file that was removed meanwhile is one as long as
 * somebody has it; one that several have is counted once.
 */
#ifndef VS_COLLECTOR_SHARED_FILES_H
#define VS_COLLECTOR_SHARED_FILES_H

#include <stdint.h>
#include <sys/types.h>

struct shared_files {
    uint64_t bytes;       /* of memory behind the files */
    uint64_t torch_bytes; /* of it in PyTorch's files */
    uint64_t count;       /* files */
};

/*
 * Looks at `pid` and its descendants in our /proc. A file that we may look into has the bytes
 * it occupies, one that is only seen in a map those that are mapped of it. What is not shown
 * to us is left out. Returns 0; -ESRCH when the process is gone; -ENOMEM.
 */
int shared_files_measure(pid_t pid, struct shared_files *out);

#endif
