/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the hooks set and read in the fake driver. */
#ifndef VS_TESTS_FAKE_CUDA_H
#define VS_TESTS_FAKE_CUDA_H

#include <stdint.h>

struct fake_cuda {
    int result; /* of the next calls */
    int device; /* of the current context */
    int has_context;
    int alloc_calls;
    int free_calls;
    int free_questions;       /* cuMemGetInfo calls, the shim's own included */
    int free_question_us;     /* how long one takes */
    int context_calls;        /* cuDevicePrimaryCtxRetain */
    int pushed;               /* contexts pushed and not popped */
    int alloc_through_create; /* cuMemAlloc calls cuMemCreate through the preloaded symbol */
    int free_through_unmap;   /* cuMemFree calls cuMemUnmap so */
    int free_through_free;    /* cuMemFree passes the call on to the preloaded symbol, once */
    void *capturing;          /* stream */
    void (*on_free)(void);
    void *(*raw_symbol)(void *handle, const char *name); /* dlsym past every interposer */
};

#endif
