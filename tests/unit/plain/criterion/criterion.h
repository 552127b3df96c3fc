/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of Criterion's interface that our tests use, for builds where
 * Criterion itself cannot run: ThreadSanitizer's address space has no room for
 * its arena. One header, one test program each; every test runs in a fork.
 */
#ifndef VS_TESTS_UNIT_PLAIN_CRITERION_H
#define VS_TESTS_UNIT_PLAIN_CRITERION_H

#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

struct plain_options {
    int none; /* so that an empty list of options is an initializer */
    void (*init)(void);
    void (*fini)(void);
    double timeout; /* seconds */
    int signal, exit_code;
};

struct plain_test {
    const char *suite, *name; /* name NULL: the suite itself */
    void (*body)(void);
    struct plain_options options;
    struct plain_test *next;
};

static struct plain_test *plain_tests;

__attribute__((unused)) static void plain_register(struct plain_test *test)
{
    struct plain_test **last = &plain_tests;
    while (*last != NULL) {
        last = &(*last)->next;
    }
    *last = test;
}

#define PLAIN_ENTRY(symbol, suite_name, test_name, test_body, ...)              \
    __attribute__((constructor)) static void plain_register_##symbol(void)      \
    {                                                                           \
        static struct plain_test entry = {.suite = suite_name,                  \
                                          .name = test_name,                    \
                                          .body = test_body,                    \
                                          .options = {.none = 0, __VA_ARGS__}}; \
        plain_register(&entry);                                                 \
    }

/* The declaration takes the semicolon that follows. */
#define TestSuite(suite, ...)                           \
    PLAIN_ENTRY(suite, #suite, NULL, NULL, __VA_ARGS__) \
    struct plain_options

#define Test(suite, name, ...)                                                     \
    static void suite##_##name##_body(void);                                       \
    PLAIN_ENTRY(suite##_##name, #suite, #name, suite##_##name##_body, __VA_ARGS__) \
    static void suite##_##name##_body(void)

/* ---- assertions ------------------------------------------------------------------- */

#define PLAIN_CHECK(holds, text, ...)                                         \
    do {                                                                      \
        if (!(holds)) {                                                       \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, text); \
            _exit(99);                                                        \
        }                                                                     \
    } while (0)

#define cr_assert(condition, ...) PLAIN_CHECK((condition), #condition)
#define cr_assert_not(condition, ...) PLAIN_CHECK(!(condition), "!(" #condition ")")
#define cr_assert_eq(a, b, ...) PLAIN_CHECK((a) == (b), #a " == " #b)
#define cr_assert_neq(a, b, ...) PLAIN_CHECK((a) != (b), #a " != " #b)
#define cr_assert_fail(...) PLAIN_CHECK(false, "this point is not reached")
#define cr_assert_float_eq(a, b, most_off, ...) \
    PLAIN_CHECK(fabs((a) - (b)) <= (most_off), #a " about " #b)
#define cr_assert_lt(a, b, ...) PLAIN_CHECK((a) < (b), #a " < " #b)
#define cr_assert_leq(a, b, ...) PLAIN_CHECK((a) <= (b), #a " <= " #b)
#define cr_assert_gt(a, b, ...) PLAIN_CHECK((a) > (b), #a " > " #b)
#define cr_assert_geq(a, b, ...) PLAIN_CHECK((a) >= (b), #a " >= " #b)
#define cr_assert_null(a, ...) PLAIN_CHECK((a) == NULL, #a " == NULL")
#define cr_assert_not_null(a, ...) PLAIN_CHECK((a) != NULL, #a " != NULL")
#define cr_assert_str_eq(a, b, ...) PLAIN_CHECK(strcmp((a), (b)) == 0, #a " is " #b)
#define cr_assert_arr_eq(a, b, bytes, ...) \
    PLAIN_CHECK(memcmp((a), (b), (bytes)) == 0, #a " holds " #b)

/* Criterion goes on after a failed expectation; here the first one ends the test as well. */
#define cr_expect cr_assert
#define cr_expect_not cr_assert_not
#define cr_expect_eq cr_assert_eq
#define cr_expect_neq cr_assert_neq
#define cr_expect_lt cr_assert_lt
#define cr_expect_leq cr_assert_leq
#define cr_expect_gt cr_assert_gt
#define cr_expect_geq cr_assert_geq
#define cr_expect_null cr_assert_null
#define cr_expect_not_null cr_assert_not_null
#define cr_expect_str_eq cr_assert_str_eq

/* ---- running ------------------------------------------------------------------------ */

static const struct plain_options *plain_suite_options(const char *suite)
{
    static const struct plain_options none;
    for (const struct plain_test *entry = plain_tests; entry != NULL; entry = entry->next) {
        if (entry->name == NULL && strcmp(entry->suite, suite) == 0) {
            return &entry->options;
        }
    }
    return &none;
}

/* In the child: exit, so that sanitizers have their say. */
__attribute__((noreturn)) static void plain_run_here(const struct plain_test *test)
{
    const struct plain_options *suite = plain_suite_options(test->suite);
    if (test->options.timeout > 0) {
        /* Sanitized code is several times slower than what the limit was made for. */
        alarm((unsigned)ceil(test->options.timeout) * 10);
    }
    if (suite->init != NULL) {
        suite->init();
    }
    if (test->options.init != NULL) {
        test->options.init();
    }
    test->body();
    if (test->options.fini != NULL) {
        test->options.fini();
    }
    if (suite->fini != NULL) {
        suite->fini();
    }
    exit(0);
}

static bool plain_passes(const struct plain_test *test)
{
    int status = 0;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        plain_run_here(test);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        return false;
    }
    if (WIFSIGNALED(status)) {
        return WTERMSIG(status) == test->options.signal;
    }
    return test->options.signal == 0 && WEXITSTATUS(status) == test->options.exit_code;
}

int main(void)
{
    unsigned passed = 0;
    unsigned failed = 0;
    for (const struct plain_test *test = plain_tests; test != NULL; test = test->next) {
        if (test->name == NULL) {
            continue;
        }
        if (plain_passes(test)) {
            passed++;
        } else {
            failed++;
            fprintf(stderr, "FAILED %s::%s\n", test->suite, test->name);
        }
    }
    printf("%u passed, %u failed\n", passed, failed);
    return failed != 0 || passed == 0;
}

#endif
