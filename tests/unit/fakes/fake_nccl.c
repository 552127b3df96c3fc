/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL's entry points, which do as the test has set. */
#include "fake_nccl.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

struct id {
    char internal[128];
};

int cuMemAlloc_v2(uint64_t *out, size_t bytes);

EXPORT struct fake_nccl fake_nccl;

static int done(void **out)
{
    fake_nccl.calls++;
    errno = fake_nccl.error;
    if (fake_nccl.late) {
        fake_nccl.late_out = out;
    } else if (out != NULL && fake_nccl.result == 0) {
        *out = fake_nccl.handle;
    }
    return fake_nccl.result;
}

EXPORT int ncclCommInitRank(void **out, int ranks, struct id id, int rank);
int ncclCommInitRank(void **out, int ranks, struct id id, int rank)
{
    (void)ranks, (void)rank;
    fake_nccl.first_byte = id.internal[0];
    fake_nccl.last_byte = id.internal[127];
    return done(out);
}

EXPORT int ncclCommInitAll(void **out, int count, const int *devices);
int ncclCommInitAll(void **out, int count, const int *devices)
{
    (void)devices;
    for (int i = 1; i < count; i++) {
        out[i] = (char *)fake_nccl.handle + i;
    }
    return done(out);
}

EXPORT int ncclCommSplit(void *parent, int color, int key, void **out, void *config);
int ncclCommSplit(void *parent, int color, int key, void **out, void *config)
{
    (void)parent, (void)color, (void)key, (void)config;
    return done(out);
}

EXPORT int ncclCommDestroy(void *communicator);
int ncclCommDestroy(void *communicator)
{
    (void)communicator;
    return done(NULL);
}

EXPORT int ncclGroupStart(void);
int ncclGroupStart(void)
{
    return 0;
}

EXPORT int ncclGroupEnd(void);
int ncclGroupEnd(void)
{
    if (fake_nccl.late_out != NULL && fake_nccl.group_result == 0) {
        *fake_nccl.late_out = fake_nccl.handle;
    }
    return fake_nccl.group_result;
}

static int answer(int *out, int value)
{
    fake_nccl.asked++;
    *out = value;
    return 0;
}

EXPORT int ncclCommCount(void *communicator, int *out);
int ncclCommCount(void *communicator, int *out)
{
    (void)communicator;
    return answer(out, 6);
}

EXPORT int ncclCommUserRank(void *communicator, int *out);
int ncclCommUserRank(void *communicator, int *out)
{
    (void)communicator;
    return answer(out, 5);
}

EXPORT int ncclMemAlloc(void **out, size_t bytes);
int ncclMemAlloc(void **out, size_t bytes)
{
    uint64_t address = 0;
    int result = cuMemAlloc_v2(&address, bytes);
    *out = (void *)(uintptr_t)address;
    return result;
}
