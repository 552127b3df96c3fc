/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which failures other processes' traces are looked into for, how a sibling is called and
 * found, and what becomes of a file that is no trace. What is read of traces is tested
 * with traces (tests/cli/cases/siblings.case).
 */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "replay/siblings.h"
#include "replay/summary.h"

static struct vs_oom failure(enum vs_oom_class class)
{
    return (struct vs_oom){.device = 0, .layer = VS_LAYER_DRIVER, .class = class};
}

Test(siblings, failures_that_others_may_explain)
{
    static const enum vs_oom_class may[] = {
        VS_OOM_UNKNOWN,       VS_OOM_FULL,           VS_OOM_FRAGMENTED,
        VS_OOM_HELD_BY_CACHE, VS_OOM_OUTSIDE,        VS_OOM_OTHER_PROCESS,
        VS_OOM_OTHER_STREAM,  VS_OOM_PINNED_SEGMENT, VS_OOM_WAITING_STREAMS};
    static const enum vs_oom_class never[] = {VS_OOM_FOLLOW_UP, VS_OOM_ADDRESS_SPACE,
                                              VS_OOM_MULTICAST, VS_OOM_LIMIT,
                                              VS_OOM_REQUEST_EXCEEDS_DEVICE};
    for (size_t i = 0; i < sizeof(may) / sizeof(may[0]); i++) {
        struct vs_oom oom = failure(may[i]);
        cr_expect(vs_siblings_concern(&oom), "%s", vs_oom_class_name(may[i]));
        oom.layer = VS_LAYER_HOST;
        cr_expect_not(vs_siblings_concern(&oom), "host memory is nobody's device memory");
        oom.layer = VS_LAYER_DRIVER;
        oom.device = -1;
        cr_expect_not(vs_siblings_concern(&oom), "which device is not known");
    }
    for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++) {
        struct vs_oom oom = failure(never[i]);
        cr_expect_not(vs_siblings_concern(&oom), "%s", vs_oom_class_name(never[i]));
    }
}

Test(siblings, without_a_boot_id_or_a_failure_nobody_is_looked_for)
{
    struct vs_oom oom = failure(VS_OOM_FULL);
    struct vs_summary *summary = calloc(1, sizeof(*summary));
    cr_assert_not_null(summary);
    summary->state = calloc(1, sizeof(*summary->state));
    cr_assert_not_null(summary->state);
    summary->process = json_object();
    summary->ooms.items = &oom;
    summary->ooms.count = 1;
    cr_expect_not(vs_siblings_wanted(summary), "no boot id");
    json_object_set_new(summary->process, "boot_id", json_string("one"));
    summary->ooms.count = 0;
    cr_expect_not(vs_siblings_wanted(summary), "no failure");
    json_decref(summary->process);
    free(summary->state);
    free(summary);
}

Test(siblings, a_name_is_never_empty)
{
    char title[] = "engine", exe[] = "/opt/bin/python", folder[] = "/", none[] = "";
    struct vs_sibling sibling = {.title = title, .exe = exe};
    cr_expect_str_eq(vs_sibling_name(&sibling), "engine");
    sibling.title = none;
    cr_expect_str_eq(vs_sibling_name(&sibling), "python");
    sibling.exe = folder;
    cr_expect_str_eq(vs_sibling_name(&sibling), "unknown program");
    sibling.exe = none;
    cr_expect_str_eq(vs_sibling_name(&sibling), "unknown program");
}

/* NVML's number is that of the host, where a container has another. */
Test(siblings, are_found_by_the_number_of_the_host)
{
    struct vs_sibling items[] = {{.pid = 7, .host_pid = 1007}, {.pid = 9}, {.pid = 0}};
    struct vs_siblings siblings = {.items = items, .count = 3};
    cr_expect_eq(vs_siblings_by_pid(&siblings, 1007), &items[0]);
    cr_expect_null(vs_siblings_by_pid(&siblings, 7), "that is another process on the host");
    cr_expect_eq(vs_siblings_by_pid(&siblings, 9), &items[1]);
    cr_expect_null(vs_siblings_by_pid(&siblings, 0), "not known is nobody");
}

static void put(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    cr_assert_geq(fputs(text, file), 0);
    cr_assert_eq(fclose(file), 0);
}

Test(siblings, what_is_no_trace_is_said_to_be_left_out)
{
    char folder[] = "/tmp/siblingsXXXXXX", path[64];
    cr_assert_not_null(mkdtemp(folder));
    struct vs_summary *summary = calloc(1, sizeof(*summary));
    cr_assert_not_null(summary);
    summary->process = json_object();
    snprintf(path, sizeof(path), "%s/gone.vscope", folder);
    cr_expect_eq(vs_siblings_add(summary, path, "gone.vscope"), 0);
    snprintf(path, sizeof(path), "%s/text.vscope", folder);
    put(path, "not a trace\n");
    cr_expect_eq(vs_siblings_add(summary, path, "text.vscope"), 0);
    const struct vs_siblings *siblings = &summary->siblings;
    cr_expect(siblings->looked);
    cr_expect_eq(siblings->traces, 2);
    cr_expect_eq(siblings->count, 0);
    cr_assert_eq(siblings->skip_count, 2);
    cr_expect_str_eq(siblings->skips[0].file, "gone.vscope");
    cr_expect_str_eq(siblings->skips[0].why, "No such file or directory");
    cr_expect_str_eq(siblings->skips[1].file, "text.vscope");
    cr_expect_str_eq(siblings->skips[1].why, "no trace, or too damaged");
    vs_siblings_release(&summary->siblings);
    cr_expect_null(summary->siblings.items);
    cr_expect_eq(summary->siblings.skip_count, 0);
    unlink(path);
    rmdir(folder);
    json_decref(summary->process);
    free(summary);
}
