/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A C program that opens a C++ library and times its exceptions: the layout of
 * a Python interpreter with a C++ extension. Prints the best of several batches
 * in nanoseconds per exception. Usage: throw-time LIBRARY BATCHES
 */
#include "driver.h"

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fprintf(stderr, "throw-time: %s\n", dlerror());
        return 3;
    }
    double (*throw_ns)(int);
    *(void **)&throw_ns = driver_need(library, "throw_ns");
    throw_ns(200);
    double best = throw_ns(500);
    for (int i = 1; i < atoi(argv[2]); i++) {
        double now = throw_ns(500);
        best = now < best ? now : best;
    }
    printf("%.0f\n", best);
    return 0;
}
