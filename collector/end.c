/* SPDX-License-Identifier: Apache-2.0 */
/* How the traced process ended. */
#include "end.h"

#include <sys/wait.h>

static struct end by_status(const struct end_evidence *evidence)
{
    struct end end = {VS_END_UNKNOWN, END_NUMBER_UNKNOWN, END_NUMBER_UNKNOWN, false, "status"};
    if (WIFSIGNALED(evidence->wait_status)) {
        end.ended = VS_END_KILLED;
        end.signal = WTERMSIG(evidence->wait_status);
    } else {
        end.ended = VS_END_EXIT;
        end.exit_code = WEXITSTATUS(evidence->wait_status);
        end.complete = evidence->mark == VS_END_EXIT;
        if (end.complete)
            end.how = "program+status";
    }
    return end;
}

static struct end by_mark(const struct end_evidence *evidence)
{
    struct end end = {evidence->mark, END_NUMBER_UNKNOWN, END_NUMBER_UNKNOWN, false, "program"};
    switch (evidence->mark) {
    case VS_END_EXIT:
        end.complete = true;
        if (evidence->mark_value >= 0)
            end.exit_code = evidence->mark_value & 0xff;
        break;
    case VS_END_KILLED:
        if (evidence->mark_value > 0)
            end.signal = evidence->mark_value;
        break;
    case VS_END_EXEC:
        /* Until it is dead the exec may still fail. A mark that stays has come true: a failed exec
         * takes it back, so a program too short to be seen has run since. */
        end.ended = evidence->running ? VS_END_UNKNOWN : VS_END_EXEC;
        end.complete = !evidence->running;
        break;
    case VS_END_UNKNOWN:
    default:
        end.ended = VS_END_UNKNOWN;
        end.how = "none";
    }
    return end;
}

struct end end_decide(const struct end_evidence *evidence)
{
    if (evidence->replaced) {
        bool told = evidence->mark == VS_END_EXEC;
        return (struct end){VS_END_EXEC, END_NUMBER_UNKNOWN, END_NUMBER_UNKNOWN, told,
                            told ? "program" : "maps"};
    }
    if (evidence->have_status && !evidence->running && evidence->mark != VS_END_EXEC)
        return by_status(evidence);
    return by_mark(evidence);
}

const char *end_name(enum vs_end ended)
{
    switch (ended) {
    case VS_END_EXIT:
        return "exit";
    case VS_END_KILLED:
        return "killed";
    case VS_END_EXEC:
        return "exec";
    case VS_END_UNKNOWN:
    default:
        return "unknown";
    }
}

static json_t *number_or_null(int number)
{
    return number == END_NUMBER_UNKNOWN ? json_null() : json_integer(number);
}

json_t *end_json(const struct end *end)
{
    return json_pack("{s:s, s:o, s:o, s:b, s:s}", "ended", end_name(end->ended), "exit_code",
                     number_or_null(end->exit_code), "signal", number_or_null(end->signal),
                     "complete", (int)end->complete, "how", end->how);
}
