/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that the compiler inlines, functions that never return, and functions that are split. */
#include <stdio.h>
#include <stdlib.h>

static inline __attribute__((always_inline)) int deepest(int value)
{
    if (value == 41)
        puts("forty-one");
    return value * 3;
}

static inline __attribute__((always_inline)) int middle(int value)
{
    int sum = 0;
    for (int i = 0; i < value; i++)
        sum += deepest(i) ^ value;
    return sum;
}

__attribute__((noinline)) int outer(int value)
{
    return middle(value) + middle(value + 1);
}

/* The call is its last instruction: where it would return to is another function. */
__attribute__((noinline, noreturn)) void dies(const char *why)
{
    puts(why);
    exit(3);
}

__attribute__((noinline)) int behind(int value)
{
    return value == 7 ? outer(value) : -value;
}

static __attribute__((noinline)) int rarely(int value)
{
    if (__builtin_expect(value > 1000, 0)) {
        fprintf(stderr, "large: %d\n", value);
        if (value > 5000)
            dies("too large");
    }
    return behind(value) + 1;
}

__attribute__((visibility("default"))) int exported_entry(int value)
{
    return rarely(value) + outer(value);
}

int main(int argc, char **argv)
{
    (void)argv;
    printf("%d\n", exported_entry(argc));
    return 0;
}
