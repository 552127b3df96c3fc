/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program built with a sanitizer, whose runtime looks functions up before
 * anything else runs. It works as usual with libvramscope.so preloaded.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    char *block = malloc(16);
    void *library = dlopen("libm.so.6", RTLD_NOW);
    void *found = library != NULL ? dlsym(library, "cos") : NULL;
    void *next = dlsym(RTLD_NEXT, "malloc");
    void *versioned = dlvsym(RTLD_DEFAULT, "no_such_function", "GLIBC_2.2.5");
    int works =
        block != NULL && found != NULL && next != NULL && versioned == NULL && dlerror() != NULL;
    free(block);
    if (library != NULL) {
        dlclose(library);
    }
    puts(works ? "works" : "does not work");
    return works ? 0 : 1;
}
