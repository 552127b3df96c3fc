/* SPDX-License-Identifier: Apache-2.0 */
/* The part of NCCL's interface that the stand-in in nccl_library.c has. */
#ifndef VS_TESTS_NCCL_LIBRARY_H
#define VS_TESTS_NCCL_LIBRARY_H

#include <stddef.h>

struct unique_id {
    char internal[128];
};
struct communicator;

/* Results: 0 success, 1 a CUDA call failed, 4 invalid argument. */
int ncclCommInitRank(struct communicator **out, int ranks, struct unique_id id, int rank);
int ncclCommInitAll(struct communicator **out, int count, const int *devices);
int ncclCommSplit(struct communicator *parent, int color, int key, struct communicator **out,
                  void *config);
int ncclCommDestroy(struct communicator *communicator);
int ncclCommAbort(struct communicator *communicator);
int ncclCommCount(const struct communicator *communicator, int *count);
int ncclCommUserRank(const struct communicator *communicator, int *rank);
int ncclCommCuDevice(const struct communicator *communicator, int *device);
int ncclGroupStart(void);
int ncclGroupEnd(void);
int ncclMemAlloc(void **out, size_t bytes);

#endif
