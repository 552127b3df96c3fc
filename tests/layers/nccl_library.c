/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library of NCCL's shape: a CUDA runtime of its own inside, communicators that
 * take device memory as they are made, on the caller's thread (a MiB for each rank)
 * and on one of the library's (2 MiB), and give it back as they are destroyed. Inside
 * a group the work is done, and the handle written, at the end of the group.
 */
#include "nccl_library.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))
#define MIB ((size_t)1 << 20)

enum { SUCCESS = 0, CUDA_FAILED = 1, INVALID_ARGUMENT = 4, GROUP_MOST = 8 };

struct communicator {
    int ranks, rank, device, failed;
    void *channels; /* taken by the thread that makes it */
    void *service;  /* taken by a thread of the library */
};

static __thread struct {
    int depth;
    int count;
    struct communicator **outs[GROUP_MOST];
    struct communicator *communicators[GROUP_MOST];
} group;

static void *serve(void *argument)
{
    struct communicator *communicator = argument;
    communicator->failed = cudaSetDevice(communicator->device) != cudaSuccess ||
                           cudaMalloc(&communicator->service, 2 * MIB) != cudaSuccess;
    return NULL;
}

static int carry_out(struct communicator *communicator, struct communicator **out)
{
    pthread_t thread;
    if (cudaSetDevice(communicator->device) != cudaSuccess ||
        cudaMalloc(&communicator->channels, (size_t)communicator->ranks * MIB) != cudaSuccess ||
        pthread_create(&thread, NULL, serve, communicator) != 0) {
        return CUDA_FAILED;
    }
    pthread_join(thread, NULL);
    *out = communicator;
    return communicator->failed ? CUDA_FAILED : SUCCESS;
}

static int make(struct communicator **out, int ranks, int rank, int device)
{
    if (out == NULL || ranks < 1 || rank < 0 || rank >= ranks) {
        return INVALID_ARGUMENT;
    }
    struct communicator *communicator = calloc(1, sizeof(*communicator));
    if (communicator == NULL) {
        return CUDA_FAILED;
    }
    communicator->ranks = ranks;
    communicator->rank = rank;
    communicator->device = device;
    *out = NULL;
    if (group.depth == 0 || group.count == GROUP_MOST) {
        return carry_out(communicator, out);
    }
    group.outs[group.count] = out;
    group.communicators[group.count++] = communicator;
    return SUCCESS;
}

EXPORT int ncclGroupStart(void)
{
    group.depth++;
    return SUCCESS;
}

EXPORT int ncclGroupEnd(void)
{
    int result = SUCCESS;
    if (--group.depth != 0) {
        return SUCCESS;
    }
    for (int i = 0; i < group.count && result == SUCCESS; i++) {
        result = carry_out(group.communicators[i], group.outs[i]);
    }
    group.count = 0;
    return result;
}

EXPORT int ncclCommInitRank(struct communicator **out, int ranks, struct unique_id id, int rank)
{
    int device = 0;
    (void)id;
    return cudaGetDevice(&device) != cudaSuccess ? CUDA_FAILED : make(out, ranks, rank, device);
}

EXPORT int ncclCommInitAll(struct communicator **out, int count, const int *devices)
{
    int result = SUCCESS;
    for (int i = 0; i < count && result == SUCCESS; i++) {
        result = make(&out[i], count, i, devices != NULL ? devices[i] : i);
    }
    return result;
}

/* Half of the parent's ranks are in each part. */
EXPORT int ncclCommSplit(struct communicator *parent, int color, int key, struct communicator **out,
                         void *config)
{
    (void)key, (void)config;
    if (color < 0) {
        *out = NULL;
        return SUCCESS;
    }
    return make(out, (parent->ranks + 1) / 2, parent->rank / 2, parent->device);
}

EXPORT int ncclCommDestroy(struct communicator *communicator)
{
    if (communicator == NULL) {
        return SUCCESS;
    }
    if (cudaFree(communicator->channels) != cudaSuccess ||
        cudaFree(communicator->service) != cudaSuccess) {
        return CUDA_FAILED;
    }
    free(communicator);
    return SUCCESS;
}

EXPORT int ncclCommAbort(struct communicator *communicator)
{
    return ncclCommDestroy(communicator);
}

EXPORT int ncclCommCount(const struct communicator *communicator, int *count)
{
    *count = communicator->ranks;
    return SUCCESS;
}

EXPORT int ncclCommUserRank(const struct communicator *communicator, int *rank)
{
    *rank = communicator->rank;
    return SUCCESS;
}

EXPORT int ncclCommCuDevice(const struct communicator *communicator, int *device)
{
    *device = communicator->device;
    return SUCCESS;
}

EXPORT int ncclMemAlloc(void **out, size_t bytes)
{
    return cudaMalloc(out, bytes) == cudaSuccess ? SUCCESS : CUDA_FAILED;
}
