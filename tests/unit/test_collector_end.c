/* SPDX-License-Identifier: Apache-2.0 */
/* How a process ended, from every combination of what it said and what the kernel says. */
#include <criterion/criterion.h>

#include "../../collector/end.h"

#define EXITED(code) ((code) << 8)

Test(collector_end, told_and_confirmed)
{
    struct end_evidence known = {
        .mark = VS_END_EXIT, .mark_value = 3, .have_status = true, .wait_status = EXITED(3)};
    struct end end = end_decide(&known);
    cr_assert_eq(end.ended, VS_END_EXIT);
    cr_assert_eq(end.exit_code, 3);
    cr_assert_eq(end.signal, END_NUMBER_UNKNOWN);
    cr_assert(end.complete);
}

Test(collector_end, told_and_reaped_before_we_looked)
{
    struct end_evidence known = {.mark = VS_END_EXIT, .mark_value = 256 + 7};
    struct end end = end_decide(&known);
    cr_assert_eq(end.ended, VS_END_EXIT);
    cr_assert_eq(end.exit_code, 7);
    cr_assert(end.complete);
    known.mark_value = -1;
    cr_assert_eq(end_decide(&known).exit_code, END_NUMBER_UNKNOWN);
}

Test(collector_end, a_signal_contradicts_what_was_told)
{
    struct end_evidence known = {
        .mark = VS_END_EXIT, .mark_value = 0, .have_status = true, .wait_status = 9};
    struct end end = end_decide(&known);
    cr_assert_eq(end.ended, VS_END_KILLED);
    cr_assert_eq(end.signal, 9);
    cr_assert_eq(end.exit_code, END_NUMBER_UNKNOWN);
    cr_assert_not(end.complete);
}

Test(collector_end, an_abort_with_a_core_is_killed_by_6)
{
    struct end_evidence known = {.have_status = true, .wait_status = 6 | 0x80};
    cr_assert_eq(end_decide(&known).ended, VS_END_KILLED);
    cr_assert_eq(end_decide(&known).signal, 6);
}

Test(collector_end, an_exit_nobody_told_is_not_complete)
{
    struct end_evidence known = {.have_status = true, .wait_status = EXITED(0)};
    struct end end = end_decide(&known);
    cr_assert_eq(end.ended, VS_END_EXIT);
    cr_assert_eq(end.exit_code, 0);
    cr_assert_not(end.complete);
}

Test(collector_end, killed_is_never_complete)
{
    struct end_evidence known = {.mark = VS_END_KILLED, .mark_value = 11};
    struct end end = end_decide(&known);
    cr_assert_eq(end.ended, VS_END_KILLED);
    cr_assert_eq(end.signal, 11);
    cr_assert_not(end.complete);
}

Test(collector_end, nothing_known)
{
    struct end_evidence known = {.mark = VS_END_UNKNOWN};
    struct end end = end_decide(&known);
    cr_assert_eq(end.ended, VS_END_UNKNOWN);
    cr_assert_eq(end.exit_code, END_NUMBER_UNKNOWN);
    cr_assert_not(end.complete);
}

Test(collector_end, exec_told_and_seen)
{
    struct end_evidence known = {.mark = VS_END_EXEC, .replaced = true};
    cr_assert_eq(end_decide(&known).ended, VS_END_EXEC);
    cr_assert(end_decide(&known).complete);
    known.mark = VS_END_UNKNOWN;
    cr_assert_eq(end_decide(&known).ended, VS_END_EXEC);
    cr_assert_not(end_decide(&known).complete);
}

Test(collector_end, exec_told_and_the_new_program_too_short_to_be_seen)
{
    struct end_evidence known = {.mark = VS_END_EXEC, .have_status = true, .wait_status = 9};
    struct end end = end_decide(&known);
    cr_assert_eq(end.ended, VS_END_EXEC);
    cr_assert_eq(end.signal, END_NUMBER_UNKNOWN, "that was the other program's");
    cr_assert(end.complete);
}

Test(collector_end, exec_told_and_not_done_yet)
{
    struct end_evidence known = {.mark = VS_END_EXEC, .running = true};
    cr_assert_eq(end_decide(&known).ended, VS_END_UNKNOWN);
    cr_assert_not(end_decide(&known).complete);
}

Test(collector_end, on_the_way_a_status_means_nothing)
{
    struct end_evidence known = {
        .mark = VS_END_EXIT, .mark_value = 1, .running = true, .have_status = true};
    cr_assert_eq(end_decide(&known).exit_code, 1);
}

Test(collector_end, unknown_numbers_are_null)
{
    struct end end = {VS_END_KILLED, END_NUMBER_UNKNOWN, 9, false, "status"};
    json_t *object = end_json(&end);
    cr_assert(json_is_null(json_object_get(object, "exit_code")));
    cr_assert_eq(json_integer_value(json_object_get(object, "signal")), 9);
    cr_assert(json_is_false(json_object_get(object, "complete")));
    json_decref(object);
}
