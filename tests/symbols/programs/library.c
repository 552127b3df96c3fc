/* SPDX-License-Identifier: Apache-2.0 */
/* The library beside allocates.c. */
#include <stddef.h>

typedef int allocate_function(unsigned long long *address, size_t bytes);
typedef int free_function(unsigned long long address);

int step_in_library(allocate_function *allocate, free_function *release, size_t bytes);

static __attribute__((noinline)) int hidden_step(allocate_function *allocate,
                                                 free_function *release, size_t bytes)
{
    unsigned long long address = 0;
    int result = allocate(&address, bytes);
    return result ? result : release(address);
}

int step_in_library(allocate_function *allocate, free_function *release, size_t bytes)
{
    /* Not a tail call: this function stays on the stack. */
    volatile int result = hidden_step(allocate, release, bytes);
    return result;
}
