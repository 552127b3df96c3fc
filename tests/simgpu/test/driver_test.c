/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the driver's tests, each in a process of its own; arguments select by the start of the name.
 */
#include "driver_test.h"

#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct test *tests;
static char state_path[64];

void test_register(struct test *test)
{
    test->next = tests;
    tests = test;
}

void test_init(const char *const *settings)
{
    for (; settings && *settings; settings++)
        putenv((char *)*settings);
    OK(cuInit(0));
}

void test_start(const char *const *settings)
{
    CUcontext context;
    test_init(settings);
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
}

uint64_t test_used(void)
{
    size_t free_bytes = 0;
    size_t total = 0;
    OK(cuMemGetInfo(&free_bytes, &total));
    EXPECT_EQ(simgpu_device_used(0), total - free_bytes);
    return total - free_bytes - 300 * MIB;
}

static void remove_state(void)
{
    char lock[80];
    snprintf(lock, sizeof lock, "%s.lock", state_path);
    unlink(state_path);
    unlink(lock);
}

void test_share_state(void)
{
    snprintf(state_path, sizeof state_path, "/tmp/simgpu-test.XXXXXX");
    int fd = mkstemp(state_path);
    EXPECT(fd >= 0);
    close(fd);
    setenv("SIMGPU_STATE", state_path, 1);
    atexit(remove_state);
}

uint64_t test_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static bool is_selected(const char *name, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strncmp(name, argv[i], strlen(argv[i])) == 0)
            return true;
    return argc == 1;
}

static bool passes(const struct test *test)
{
    if (getenv("SIMGPU_TEST_DIRECT")) { /* started by a test, which wants to kill just this */
        test->run();
        return true;
    }
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(120);
        test->run();
        exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status))
        fprintf(stderr, "%s: signal %d\n", test->name, WTERMSIG(status));
    return status == 0;
}

int main(int argc, char **argv)
{
    int passed = 0;
    int failed = 0;
    for (const struct test *test = tests; test; test = test->next) {
        if (!is_selected(test->name, argc, argv))
            continue;
        if (passes(test)) {
            passed++;
        } else {
            failed++;
            printf("FAIL %s\n", test->name);
        }
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed || !passed;
}
