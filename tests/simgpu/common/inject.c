/* SPDX-License-Identifier: Apache-2.0 */
/* Failure and delay rules; see inject.h. */
#include "inject.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "config.h"

#define MAX_RULES 64
#define NAME_SIZE 64

enum when { WHEN_NTH, WHEN_EVERY, WHEN_FROM, WHEN_ABOVE };

struct fail_rule {
    char name[NAME_SIZE];
    enum when when;
    uint64_t number; /* n, or the size */
    int error;
    atomic_uint_fast64_t calls;
};

struct delay_rule {
    char name[NAME_SIZE];
    uint64_t ns;
};

static struct {
    struct fail_rule fails[MAX_RULES];
    struct delay_rule delays[MAX_RULES];
    unsigned fail_count;
    unsigned delay_count;
    uint64_t event_delay_ns;
} rules;

int simgpu_inject_active;

static bool is_ours(const char *name, const char *prefix)
{
    bool is_runtime = strncmp(name, "cuda", 4) == 0;
    return is_runtime == (strcmp(prefix, "cuda") == 0);
}

/* Copies a call's name without the suffix that only versions it. */
static void copy_base_name(char base[NAME_SIZE], const char *name)
{
    static const char *const suffixes[] = {"_ptsz", "_ptds", "_v2", "_v3", "_v4"};
    snprintf(base, NAME_SIZE, "%s", name);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        size_t length = strlen(base);
        size_t suffix = strlen(suffixes[i]);
        if (length > suffix && strcmp(base + length - suffix, suffixes[i]) == 0)
            base[length - suffix] = '\0';
    }
}

static int parse_when(const char *text, struct fail_rule *rule)
{
    char *end = NULL;
    if (strncmp(text, "above=", 6) == 0) {
        rule->when = WHEN_ABOVE;
        return simgpu_parse_size(text + 6, &rule->number);
    }
    if (strncmp(text, "every/", 6) == 0) {
        rule->when = WHEN_EVERY;
        text += 6;
    } else if (strncmp(text, "from-", 5) == 0) {
        rule->when = WHEN_FROM;
        text += 5;
    } else {
        rule->when = WHEN_NTH;
    }
    rule->number = strtoull(text, &end, 10);
    return end != text && !*end && rule->number ? 0 : -EINVAL;
}

static void add_fail(char *item, const char *prefix, simgpu_error_number number)
{
    char *rest = item;
    const char *call = strsep(&rest, ":");
    const char *when = strsep(&rest, ":");
    struct fail_rule *rule = &rules.fails[rules.fail_count];
    if (!is_ours(call, prefix))
        return;
    if (!when || !rest || parse_when(when, rule) || (rule->error = number(rest)) <= 0) {
        fprintf(stderr,
                "simgpu: failure of '%s' is not CALL:WHEN:ERROR with WHEN = n, every/n, "
                "from-n or above=SIZE and ERROR a CUDA error like out_of_memory\n",
                call);
        return;
    }
    copy_base_name(rule->name, call);
    rules.fail_count++;
}

static void add_delay(char *item, const char *prefix)
{
    char *duration = item;
    const char *call = strsep(&duration, ":");
    uint64_t ns = 0;
    if (!duration || simgpu_parse_duration(duration, &ns)) {
        fprintf(stderr, "simgpu: delay of '%s' is not CALL:DURATION or events:DURATION\n", call);
        return;
    }
    if (strcmp(call, "events") == 0) {
        rules.event_delay_ns = ns;
    } else if (is_ours(call, prefix)) {
        struct delay_rule *rule = &rules.delays[rules.delay_count++];
        copy_base_name(rule->name, call);
        rule->ns = ns;
    }
}

void simgpu_inject_init(const char *prefix, simgpu_error_number number)
{
    const char *fail = getenv("SIMGPU_FAIL");
    const char *delay = getenv("SIMGPU_DELAY");
    char *fails = strdup(fail ? fail : "");
    char *delays = strdup(delay ? delay : "");
    char *rest = fails;
    for (char *item; (item = strsep(&rest, ",")) != NULL && rules.fail_count < MAX_RULES;)
        if (*item)
            add_fail(item, prefix, number);
    rest = delays;
    for (char *item; (item = strsep(&rest, ",")) != NULL && rules.delay_count < MAX_RULES;)
        if (*item)
            add_delay(item, prefix);
    free(fails);
    free(delays);
    simgpu_inject_active = rules.fail_count || rules.delay_count;
}

static bool rule_hits(struct fail_rule *rule, uint64_t bytes)
{
    uint64_t call = atomic_fetch_add(&rule->calls, 1) + 1;
    switch (rule->when) {
    case WHEN_NTH:
        return call == rule->number;
    case WHEN_EVERY:
        return call % rule->number == 0;
    case WHEN_FROM:
        return call >= rule->number;
    case WHEN_ABOVE:
        return bytes > rule->number;
    }
    return false;
}

static void sleep_ns(uint64_t ns)
{
    struct timespec left = {.tv_sec = (time_t)(ns / 1000000000U),
                            .tv_nsec = (long)(ns % 1000000000U)};
    while (nanosleep(&left, &left) && errno == EINTR)
        continue;
}

int simgpu_inject_call(const char *name, uint64_t bytes)
{
    int error = 0;
    for (unsigned i = 0; i < rules.delay_count; i++)
        if (strcmp(rules.delays[i].name, name) == 0)
            sleep_ns(rules.delays[i].ns);
    for (unsigned i = 0; i < rules.fail_count; i++)
        if (strcmp(rules.fails[i].name, name) == 0 && rule_hits(&rules.fails[i], bytes) && !error)
            error = rules.fails[i].error;
    return error;
}

uint64_t simgpu_inject_event_delay_ns(void)
{
    return rules.event_delay_ns;
}
