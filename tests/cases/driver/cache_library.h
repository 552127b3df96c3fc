/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A caching allocator of PyTorch's shape, as simple as one can be: a block is a whole
 * segment, the smallest cached one that is large enough, or a new one of exactly the size
 * asked for. Built as libc10_cuda.so, with the functions that the real one reports to.
 * Not thread-safe: the cases have one thread.
 */
#ifndef CASES_CACHE_LIBRARY_H
#define CASES_CACHE_LIBRARY_H

#include <cuda_runtime_api.h>
#include <stddef.h>

/* At most so many bytes are reserved; 0: no limit. */
void cache_limit(size_t bytes);
/* A block for `stream`, NULL when it is refused. */
void *cache_malloc(size_t bytes, cudaStream_t stream);
/* Gives a block back. With `waits_for` not NULL it is not used again before what was put on
   that stream so far is done. */
void cache_free(void *block, cudaStream_t waits_for);

#endif
