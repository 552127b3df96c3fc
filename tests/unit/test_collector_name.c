/* SPDX-License-Identifier: Apache-2.0 */
/* The output pattern: expansion, default names, and what follows a name that is taken. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "../../collector/name.h"

static const struct name_facts python = {.executable = "/opt/my env/bin/python3.11",
                                         .host = "node-7.cluster",
                                         .rank = NULL,
                                         .pid = 4711,
                                         .start_seconds = 1700000000};

static const char *expanded(const char *pattern, const char *rank)
{
    static char out[256];
    struct name_facts facts = python;
    facts.rank = rank;
    cr_assert_eq(name_expand(pattern, &facts, out, sizeof out), 0);
    return out;
}

Test(collector_name, letters)
{
    cr_assert_str_eq(expanded("/d/%e-%p-%h-%r-%t.x", "3"),
                     "/d/python3.11-4711-node-7.cluster-3-20231114T221320Z.x");
    cr_assert_str_eq(expanded("/d/100%%.vscope", NULL), "/d/100%.vscope");
}

Test(collector_name, no_rank_is_said)
{
    cr_assert_str_eq(expanded("/d/%r.vscope", NULL), "/d/none.vscope");
}

Test(collector_name, unknown_letters_and_a_last_percent_stay)
{
    cr_assert_str_eq(expanded("/d/%q%", NULL), "/d/%q%");
}

Test(collector_name, folders_get_the_default_name)
{
    cr_assert_str_eq(expanded("/d/", NULL), "/d/python3.11.4711.vscope");
    cr_assert_str_eq(expanded("/d/", "12"), "/d/python3.11.r12.node-7.cluster.4711.vscope");
    cr_assert_str_eq(expanded("/d/%p/", NULL), "/d/4711/python3.11.4711.vscope");
    cr_assert_str_eq(expanded("", NULL), "python3.11.4711.vscope");
}

Test(collector_name, texts_cannot_leave_the_folder)
{
    char out[128];
    struct name_facts facts = {.executable = "/bin/a b;c\n", .host = "../../etc", .rank = "1/2"};
    cr_assert_eq(name_expand("%e|%h|%r", &facts, out, sizeof out), 0);
    cr_assert_str_eq(out, "a_b_c_|.._.._etc|1_2");
}

Test(collector_name, too_long_is_an_error_at_every_length)
{
    char out[64];
    size_t needed = strlen("/d/python3.11.4711.vscope") + 1;
    for (size_t room = 0; room < needed; room++)
        cr_assert_eq(name_expand("/d/", &python, out, room), -ENAMETOOLONG, "room %zu", room);
    cr_assert_eq(name_expand("/d/", &python, out, needed), 0);
}

static const char *alternative(const char *path, unsigned n)
{
    static char out[128];
    cr_assert_eq(name_alternative(path, n, out, sizeof out), 0);
    return out;
}

Test(collector_name, alternatives_go_before_the_suffix)
{
    cr_assert_str_eq(alternative("/a.b/x.vscope", 1), "/a.b/x.1.vscope");
    cr_assert_str_eq(alternative("/a.b/x.y.vscope", 12), "/a.b/x.y.12.vscope");
    cr_assert_str_eq(alternative("/a.b/x.trace", 2), "/a.b/x.2.trace");
    cr_assert_str_eq(alternative("/a.b/plain", 1), "/a.b/plain.1");
    cr_assert_str_eq(alternative("/a.b/.hidden", 1), "/a.b/.hidden.1");
}

Test(collector_name, alternatives_too_long)
{
    char out[8];
    cr_assert_eq(name_alternative("/x.vscope", 1, out, sizeof out), -ENAMETOOLONG);
}
