/* SPDX-License-Identifier: Apache-2.0 */
/* Other processes by /proc (proc(5)): see others.h. */
#include "others.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "privacy.h"

#define NS_PER_SECOND 1000000000ULL
/* Fields of /proc/PID/stat behind the name, which ends with the last ")": state is number 3. */
#define FIRST_FIELD 3
#define FIELD_PARENT 4
#define FIELD_STARTED 22

static void add_executable(json_t *facts, uint32_t pid, bool hide)
{
    char link[48], path[PATH_MAX], shown[PATH_MAX + PRIVACY_HASH_BYTES];
    snprintf(link, sizeof link, "/proc/%" PRIu32 "/exe", pid);
    ssize_t bytes = readlink(link, path, sizeof path - 1);
    if (bytes <= 0)
        return;
    path[bytes] = 0;
    if (hide)
        privacy_path(path, shown, sizeof shown);
    const char *text = hide ? shown : path;
    json_object_set_new(facts, "exe", privacy_json_text(text, strlen(text)));
}

static void add_times(json_t *facts, char *fields)
{
    long ticks_per_second = sysconf(_SC_CLK_TCK);
    char *rest = NULL, *field = strtok_r(fields, " ", &rest);
    for (int number = FIRST_FIELD; field && number <= FIELD_STARTED; number++) {
        uint64_t value = strtoull(field, NULL, 10);
        if (number == FIELD_PARENT)
            json_object_set_new(facts, "parent_pid", json_integer((json_int_t)value));
        if (number == FIELD_STARTED && ticks_per_second > 0)
            json_object_set_new(
                facts, "started_boot_ns",
                json_integer((json_int_t)(value * (NS_PER_SECOND / (uint64_t)ticks_per_second))));
        field = strtok_r(NULL, " ", &rest);
    }
}

/* False when there is no such process. */
static bool add_status(json_t *facts, uint32_t pid)
{
    char path[48], text[1024];
    snprintf(path, sizeof path, "/proc/%" PRIu32 "/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t bytes = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    if (bytes <= 0)
        return false;
    text[bytes] = 0;
    char *name = strchr(text, '('), *end = strrchr(text, ')');
    if (!name || !end || end < name || end[1] == 0)
        return false;
    json_object_set_new(facts, "title", privacy_json_text(name + 1, (size_t)(end - name - 1)));
    add_times(facts, end + 2);
    return true;
}

static bool is_new(struct others *others, uint32_t pid)
{
    if (pid == 0 || others->count == OTHERS_NAMED)
        return false;
    for (unsigned i = 0; i < others->count; i++)
        if (others->pids[i] == pid)
            return false;
    others->pids[others->count++] = pid;
    return true;
}

json_t *others_name(struct others *others, uint32_t pid, bool hide)
{
    if (!is_new(others, pid))
        return NULL;
    json_t *facts = json_object(), *named = json_object();
    char key[16];
    snprintf(key, sizeof key, "%" PRIu32, pid);
    json_object_set_new(facts, "pid", json_integer(pid));
    bool known = add_status(facts, pid);
    if (known)
        add_executable(facts, pid, hide);
    json_object_set_new(named, key, facts);
    if (known)
        return named;
    json_decref(named);
    return NULL;
}
