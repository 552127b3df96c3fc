/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads one library after another, each into the place of the one before, and
 * allocates through each of them: the same addresses mean another function each
 * time. Prints the path and where its function lies.
 *
 *   replaced ROUNDS LIBRARY…
 */
#include "../../../lifecycle/driver.h"

typedef uint64_t through(uint64_t (*call)(void *), void *context);

static struct driver driver;

static uint64_t allocate(void *context)
{
    uint64_t address = driver_alloc(&driver, *(size_t *)context);
    driver_check(driver.release(address), "cuMemFree_v2");
    return address;
}

static void use(const char *path, size_t bytes)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        _exit(3);
    }
    through *function;
    *(void **)&function = driver_need(library, "call_through");
    function(allocate, &bytes);
    printf("use %zu %s %p\n", bytes, path, *(void **)&function);
    dlclose(library);
}

int main(int argc, char **argv)
{
    driver = driver_open();
    driver_start(&driver);
    size_t bytes = 1000;
    for (int round = 0; round < atoi(argv[1]); round++) {
        for (int i = 2; i < argc; i++) {
            use(argv[i], bytes++);
        }
    }
    return 0;
}
