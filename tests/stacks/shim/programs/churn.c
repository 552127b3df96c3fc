/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As many distinct stacks as asked for: a walk through two call sites at each
 * of 24 levels, chosen by the bits of a number. Each ends in a step mark, which
 * costs nothing but its own recording.
 *
 *   churn STACKS
 *
 * Prints how much the process's resident memory grew meanwhile, in KiB: the
 * program itself keeps nothing.
 */
#include <string.h>

#include "../../../lifecycle/driver.h"

enum { LEVELS = 24 };

static void (*mark_step)(uint64_t number);

/* What is done with the results keeps the compiler from making the calls jumps. */
static __attribute__((noinline)) uint64_t climb(uint64_t number, unsigned level)
{
    uint64_t below;
    if (level == LEVELS) {
        mark_step(number);
        return number;
    }
    if ((number >> level & 1U) != 0) {
        below = climb(number, level + 1) + 1;
        __asm__ volatile("" : "+r"(below));
    } else {
        below = climb(number, level + 1) + 2;
        __asm__ volatile("" : "+r"(below));
    }
    return below;
}

static long resident_kib(void)
{
    char line[256];
    long kib = -1;
    FILE *status = fopen("/proc/self/status", "r");
    while (status != NULL && fgets(line, sizeof(line), status) != NULL) {
        if (strncmp(line, "VmRSS:", 6) == 0) {
            kib = atol(line + 6);
        }
    }
    if (status != NULL) {
        fclose(status);
    }
    return kib;
}

int main(int argc, char **argv)
{
    uint64_t stacks = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000;
    struct driver driver = driver_open();
    *(void **)&mark_step = driver_need(RTLD_DEFAULT, "vramscope_step");
    long before_kib = resident_kib();
    driver_start(&driver);
    uint64_t sum = 0;
    uint64_t began_ns = monotonic_ns();
    for (uint64_t number = 0; number < stacks; number++) {
        sum += climb(number, 0);
    }
    uint64_t took_ns = monotonic_ns() - began_ns;
    printf("grew %ld\nns_per_stack %.1f\nsum %lu\n", resident_kib() - before_kib,
           (double)took_ns / (double)stacks, (unsigned long)sum);
    return 0;
}
