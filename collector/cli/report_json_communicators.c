/* SPDX-License-Identifier: Apache-2.0 */
/* "communicators" of the report: NCCL's, with the device memory known to be each one's. */
#include "report_json.h"

static json_t *communicator_json(const struct report *report,
                                 const struct vs_communicator *communicator)
{
    json_t *object = json_object();
    json_set(object, "live", json_boolean(communicator->phase == VS_COMMUNICATOR_LIVE));
    json_set(object, "device", json_integer_if(communicator->device >= 0, communicator->device));
    json_set(object, "ranks",
             json_integer_if(communicator->ranks != 0, (int64_t)communicator->ranks));
    json_set(object, "rank",
             json_integer_if(communicator->rank != VS_RANK_UNKNOWN, communicator->rank));
    json_set_bytes(object, "bytes", communicator->bytes);
    json_set(object, "stack", report_json_stack(report, communicator->site));
    return object;
}

json_t *report_json_communicators(const struct report *report)
{
    const struct vs_state *state = report->summary->state;
    json_t *list = json_array(), *object = json_object();
    int64_t known, all;
    for (size_t i = 0; i < state->communicator_count; i++)
        if (state->communicators[i].phase != VS_COMMUNICATOR_GONE ||
            state->communicators[i].bytes != 0)
            json_array_append_new(list, communicator_json(report, &state->communicators[i]));
    vs_state_communicator_bytes(state, &known, &all);
    json_set_bytes(object, "bytes", known);
    json_set_bytes(object, "unsplit_bytes", all - known);
    json_set(object, "list", list);
    return object;
}
