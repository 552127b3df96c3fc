/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the collector reads of the host: what can be given back, who other processes are,
 * which files in /dev/shm a process and its children have.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../collector/host_memory.h"
#include "../../collector/oom_kills.h"
#include "../../collector/others.h"
#include "../../collector/shared_files.h"

#define MIB (1024ULL * 1024ULL)

/* ---- the out-of-memory killer --------------------------------------------------------- */

Test(collector_host, kills_of_a_control_group)
{
    uint64_t kills = 0;
    cr_assert_eq(oom_kills_parse("low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\n", &kills), 0);
    cr_expect_eq(kills, 2);
    cr_assert_eq(oom_kills_parse("oom_kill_disable 0\nunder_oom 1\noom_kill 7\n", &kills), 0);
    cr_expect_eq(kills, 7);
    cr_expect_eq(oom_kills_parse("oom_kill_disable 0\nunder_oom 0\n", &kills), -ENODATA);
    cr_expect_eq(oom_kills_parse("", &kills), -ENODATA);
}

/* ---- /proc/meminfo -------------------------------------------------------------------- */

Test(collector_host, what_is_available_but_not_free)
{
    struct host_memory memory;
    cr_assert_eq(host_memory_parse("MemTotal:  3000 kB\nMemFree:   1000 kB\nMemAvailable: 2500 kB\n"
                                   "Cached:  1700 kB\n",
                                   &memory),
                 0);
    cr_expect_eq(memory.available_bytes, 2500U * 1024U);
    cr_expect_eq(memory.free_bytes, 1000U * 1024U);
    cr_expect_eq(memory.reclaimable_bytes, 1500U * 1024U);
}

/* The kernel's reserve is free, but not available. */
Test(collector_host, less_available_than_free)
{
    struct host_memory memory;
    cr_assert_eq(host_memory_parse("MemFree: 1000 kB\nMemAvailable: 900 kB\n", &memory), 0);
    cr_expect_eq(memory.reclaimable_bytes, 0);
}

Test(collector_host, lines_that_are_missing_or_no_numbers)
{
    struct host_memory memory;
    static const char *const texts[] = {"",
                                        "MemFree: 1 kB\n",
                                        "MemAvailable: 1 kB\n",
                                        "MemFree: x kB\nMemAvailable: 1 kB\n",
                                        "MemFree: 1 kB\nMemAvailable: 18446744073709551615 kB\n",
                                        "MemFreeX: 1\nMemAvailable: 1\n"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        cr_expect_eq(host_memory_parse(texts[i], &memory), -ENODATA, "%s", texts[i]);
        cr_expect_eq(memory.reclaimable_bytes, 0);
    }
}

Test(collector_host, this_host)
{
    struct host_memory memory;
    cr_assert_eq(host_memory_measure(&memory), 0);
    cr_expect_gt(memory.available_bytes, 0);
    cr_expect_gt(memory.free_bytes, 0);
}

/* ---- other processes -------------------------------------------------------------------- */

static const char *text_of(json_t *named, uint32_t pid, const char *field)
{
    char key[16];
    snprintf(key, sizeof key, "%u", pid);
    return json_string_value(json_object_get(json_object_get(named, key), field));
}

/* Its name may hold what ends the name in the file. */
Test(collector_host, a_process_is_named_once)
{
    int ready[2];
    cr_assert_eq(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        FILE *name = fopen("/proc/self/comm", "w");
        if (name == NULL || fputs("a) b (c", name) < 0 || fclose(name) != 0)
            _exit(1);
        if (write(ready[1], "x", 1) != 1)
            _exit(1);
        pause();
        _exit(0);
    }
    char byte;
    cr_assert_eq(read(ready[0], &byte, 1), 1);
    struct others others = {0};
    uint32_t pid = (uint32_t)child;
    json_t *named = others_name(&others, pid, false);
    cr_assert_not_null(named);
    cr_expect_str_eq(text_of(named, pid, "title"), "a) b (c");
    char link[64], exe[4096] = {0};
    snprintf(link, sizeof link, "/proc/%d/exe", (int)child);
    cr_assert_gt(readlink(link, exe, sizeof exe - 1), 0);
    cr_expect_str_eq(text_of(named, pid, "exe"), exe);
    char key[16];
    snprintf(key, sizeof key, "%u", pid);
    const json_t *facts = json_object_get(named, key);
    cr_expect_eq(json_integer_value(json_object_get(facts, "pid")), child);
    cr_expect_eq(json_integer_value(json_object_get(facts, "parent_pid")), getpid());
    cr_expect_gt(json_integer_value(json_object_get(facts, "started_boot_ns")), 0);
    json_decref(named);
    cr_expect_null(others_name(&others, pid, false), "it was looked up before");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

Test(collector_host, a_hidden_path_is_not_told)
{
    struct others others = {0};
    uint32_t pid = (uint32_t)getpid();
    char exe[4096] = {0};
    cr_assert_gt(readlink("/proc/self/exe", exe, sizeof exe - 1), 0);
    json_t *named = others_name(&others, pid, true);
    cr_assert_not_null(named);
    cr_assert_not_null(text_of(named, pid, "exe"));
    cr_expect(strcmp(text_of(named, pid, "exe"), exe) != 0);
    json_decref(named);
}

Test(collector_host, no_process_and_too_many)
{
    struct others others = {0};
    cr_expect_null(others_name(&others, 0, false));
    cr_expect_null(others_name(&others, 0x7ffffff0, false), "no such process");
    cr_expect_eq(others.count, 1, "it is not looked for again");
    others.count = OTHERS_NAMED;
    cr_expect_null(others_name(&others, (uint32_t)getpid(), false));
}

/* ---- files in /dev/shm -------------------------------------------------------------------- */

/* A file that has memory behind all of it; removed at once. */
static int make_file(const char *kind, uint64_t bytes)
{
    char path[96];
    snprintf(path, sizeof path, "/dev/shm/%s_vramscope_%d", kind, (int)getpid());
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    cr_assert_geq(fd, 0, "%s: %s", path, strerror(errno));
    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(posix_fallocate(fd, 0, (off_t)bytes), 0);
    return fd;
}

static struct shared_files measure(pid_t pid)
{
    struct shared_files shared;
    cr_assert_eq(shared_files_measure(pid, &shared), 0);
    return shared;
}

Test(collector_host, each_file_counts_once)
{
    struct shared_files before = measure(getpid());
    int plain = make_file("x", 3 * MIB), torch = make_file("torch", 2 * MIB);
    int again = dup(torch);
    void *mapped = mmap(NULL, 2 * MIB, PROT_READ, MAP_SHARED, torch, 0);
    cr_assert_neq(mapped, MAP_FAILED);
    struct shared_files shared = measure(getpid());
    cr_expect_eq(shared.count - before.count, 2);
    cr_expect_eq(shared.bytes - before.bytes, 5 * MIB);
    cr_expect_eq(shared.torch_bytes - before.torch_bytes, 2 * MIB);
    close(plain);
    close(torch);
    close(again);
    shared = measure(getpid());
    cr_expect_eq(shared.count - before.count, 1, "it is mapped still");
    cr_expect_eq(shared.bytes - before.bytes, 2 * MIB);
    munmap(mapped, 2 * MIB);
    cr_expect_eq(measure(getpid()).bytes, before.bytes);
}

/* Of a file of holes only what it occupies counts. */
Test(collector_host, holes_are_no_memory)
{
    struct shared_files before = measure(getpid());
    int fd = make_file("x", MIB);
    cr_assert_eq(ftruncate(fd, 64 * (off_t)MIB), 0);
    cr_expect_eq(measure(getpid()).bytes - before.bytes, MIB);
    close(fd);
}

Test(collector_host, files_of_children_count)
{
    struct shared_files before = measure(getpid());
    int ready[2];
    cr_assert_eq(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        char path[96];
        snprintf(path, sizeof path, "/dev/shm/x_vramscope_%d", (int)getpid());
        int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
        if (fd < 0 || unlink(path) != 0 || posix_fallocate(fd, 0, 4 * (off_t)MIB) != 0 ||
            write(ready[1], "x", 1) != 1)
            _exit(1);
        pause();
        _exit(0);
    }
    char byte;
    cr_assert_eq(read(ready[0], &byte, 1), 1);
    cr_expect_eq(measure(getpid()).bytes - before.bytes, 4 * MIB);
    cr_expect_eq(measure(child).bytes - before.bytes, 4 * MIB);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    struct shared_files shared;
    cr_expect_eq(shared_files_measure(child, &shared), -ESRCH);
}
