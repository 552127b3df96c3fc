/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library with names that begin like CUDA's but are not: a lookup by prefix
 * would answer for them (dlsym_probes.c).
 */
#include <dlfcn.h>
#include <stddef.h>

#define ANSWER(name, value) \
    int name(void);         \
    int name(void)          \
    {                       \
        return value;       \
    }

ANSWER(cudnnCreate, 101)
ANSWER(cublasCreate_v2, 102)
ANSWER(cufftPlan1d, 103)
ANSWER(cuteness, 104)
ANSWER(cuddle, 105)
ANSWER(cudaNotReally, 106)
ANSWER(foreign_shadowed, 107)

/* Looks behind itself: nothing there has these names; libc's is found. */
int foreign_asks_next(void);
int foreign_asks_next(void)
{
    int found = dlsym(RTLD_NEXT, "cuddle") != NULL ? 1 : 0;
    found += dlsym(RTLD_NEXT, "getpid") != NULL ? 2 : 0;
    found += dlsym(RTLD_NEXT, "cudaNotReally") != NULL ? 4 : 0;
    return found;
}
