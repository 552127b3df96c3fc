/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small harness for the driver's tests: every TEST runs in a process of its own, since a process
 * reads its configuration and starts the driver once. EXPECT… stop the test at the first miss.
 */
#ifndef SIMGPU_DRIVER_TEST_H
#define SIMGPU_DRIVER_TEST_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "../driver/books.h"

#define KIB ((size_t)1024)
#define MIB (KIB * 1024)
#define GIB (MIB * 1024)

struct test {
    const char *name;
    void (*run)(void);
    struct test *next;
};

void test_register(struct test *test);

#define TEST(name)                                                 \
    static void test_##name(void);                                 \
    __attribute__((constructor)) static void register_##name(void) \
    {                                                              \
        static struct test test = {#name, test_##name, NULL};      \
        test_register(&test);                                      \
    }                                                              \
    static void test_##name(void)

#define EXPECT(condition)                                                            \
    do {                                                                             \
        if (!(condition)) {                                                          \
            fprintf(stderr, "%s:%d: expected %s\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                                 \
        }                                                                            \
    } while (0)

#define EXPECT_EQ(a, b)                                                                           \
    do {                                                                                          \
        long long a_ = (long long)(a), b_ = (long long)(b);                                       \
        if (a_ != b_) {                                                                           \
            fprintf(stderr, "%s:%d: %s is %lld, not %s = %lld\n", __FILE__, __LINE__, #a, a_, #b, \
                    b_);                                                                          \
            exit(1);                                                                              \
        }                                                                                         \
    } while (0)

#define OK(call) EXPECT_EQ(call, CUDA_SUCCESS)

/* cuInit with the environment set before ("NAME=value", …, NULL). */
void test_init(const char *const *settings);

/* The same, and device 0's primary context current: used is then the default 300 MiB. */
void test_start(const char *const *settings);

#define START() test_start(NULL)
#define START_WITH(...) test_start((const char *const[]){__VA_ARGS__, NULL})

/* What device 0 holds beyond one context; checks the books against cuMemGetInfo. */
uint64_t test_used(void);

/* A shared state file for this test and its children, removed at the end of the process. */
void test_share_state(void);

uint64_t test_now_ms(void);

#endif
