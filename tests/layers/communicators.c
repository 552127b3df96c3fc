/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes communicators the ways a library linked with NCCL does: one alone, a split of
 * it, two in a group, one that NCCL refuses, one that is destroyed; and takes memory
 * through NCCL for itself. Ends with 1 when a call does not do what it should.
 */
#include "nccl_library.h"

#define MIB ((size_t)1 << 20)

int main(void)
{
    struct unique_id id = {{0}};
    struct communicator *alone = NULL, *half = NULL, *none = NULL, *pair[2], *refused = NULL,
                        *gone = NULL;
    void *memory = NULL;
    for (int i = 0; i < 128; i++) {
        id.internal[i] = (char)i;
    }
    if (ncclCommInitRank(&alone, 8, id, 3) != 0 || ncclMemAlloc(&memory, 16 * MIB) != 0 ||
        ncclCommSplit(alone, 1, 0, &half, NULL) != 0 ||
        ncclCommSplit(alone, -1, 0, &none, NULL) != 0 || none != NULL) {
        return 1;
    }
    pair[0] = pair[1] = NULL;
    if (ncclGroupStart() != 0 || ncclCommInitRank(&pair[0], 2, id, 0) != 0 ||
        ncclCommInitRank(&pair[1], 2, id, 1) != 0 || ncclGroupEnd() != 0 || pair[1] == NULL) {
        return 1;
    }
    if (ncclCommInitRank(&refused, 2, id, 2) != 4 || ncclCommInitRank(&gone, 32, id, 0) != 0 ||
        ncclCommAbort(gone) != 0) {
        return 1;
    }
    return 0;
}
