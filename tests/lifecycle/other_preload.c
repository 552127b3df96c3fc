/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Another preload library: counts cuMemAlloc_v2 by its symbol and passes the
 * call on, as memory savers and quota tools do. It does not touch dlsym, so it
 * sees what reaches its symbol: calls bound by name or found by RTLD_NEXT.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

static int counted;

int cuMemAlloc_v2(uint64_t *address, size_t bytes);
int cuMemAlloc_v2(uint64_t *address, size_t bytes)
{
    int (*next)(uint64_t *, size_t) = NULL;
    *(void **)&next = dlsym(RTLD_NEXT, "cuMemAlloc_v2");
    counted++;
    return next == NULL ? 999 : next(address, bytes);
}

__attribute__((destructor)) static void tell(void)
{
    if (counted > 0)
        fprintf(stderr, "other preload: %d allocations\n", counted);
}
