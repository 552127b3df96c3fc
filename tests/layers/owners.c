/* SPDX-License-Identifier: Apache-2.0 */
/*
 * owners BYTES [LIBRARY=BYTES ...]: allocates BYTES itself, then lets each library
 * allocate its own. Ends with 1 when anything fails.
 */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int let_take(char *argument)
{
    char *equals = strchr(argument, '=');
    int (*take)(size_t);
    if (equals == NULL) {
        return 1;
    }
    *equals = 0;
    void *library = dlopen(argument, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    *(void **)&take = dlsym(library, "owner_take");
    return take == NULL || take(strtoull(equals + 1, NULL, 10)) != 0;
}

int main(int count, char **arguments)
{
    void *memory = NULL;
    if (count < 2 || cudaMalloc(&memory, strtoull(arguments[1], NULL, 10)) != cudaSuccess) {
        return 1;
    }
    for (int i = 2; i < count; i++) {
        if (let_take(arguments[i]) != 0) {
            fprintf(stderr, "owners: %s failed\n", arguments[i]);
            return 1;
        }
    }
    return 0;
}
