/* SPDX-License-Identifier: Apache-2.0 */
/* "growth" of the report: every place of which more stays with each step, the worst first. */
#include <math.h>

#include "report_json.h"

/* Whole numbers as such: 512, not 512.0. */
static json_t *number_json(double number)
{
    return floor(number) == number && fabs(number) < 1e15 ? json_integer((json_int_t)number)
                                                          : json_real(number);
}

static const char *kind_of(const struct report *report, const struct vs_grown *grown)
{
    if (grown->object != 0)
        return vs_object_name((enum vs_object_kind)(grown->object - 1));
    const struct vs_site *site = vs_state_site(report->summary->state, grown->site);
    bool handle = strcmp(label_text(report->summary, site->label), "cuMemCreate") == 0;
    return handle ? "handle" : "bytes";
}

static json_t *grown_json(const struct report *report, const struct vs_grown *grown)
{
    const struct vs_site *site = vs_state_site(report->summary->state, grown->site);
    json_t *object = json_object(), *age = json_object();
    json_set(object, "stack", report_json_stack(report, grown->site));
    json_set(object, "kind", json_string(kind_of(report, grown)));
    json_set(object, "layer", json_string(report_layer_name(site->layer)));
    json_set(object, "device", json_integer_if(site->device >= 0, site->device));
    json_set(object, "bytes_per_step", number_json(grown->bytes_per_step));
    json_set(object, "count_per_step", number_json(grown->count_per_step));
    json_set(object, "steps", json_count(grown->steps));
    json_set(object, "first_step", json_integer(grown->first_step));
    json_set_bytes(object, "grown_bytes", grown->grown_bytes);
    json_set_bytes(object, "grown_count", grown->grown_count);
    json_set_bytes(object, "end_bytes", grown->end_bytes);
    json_set_bytes(object, "end_count", grown->end_count);
    json_set_bytes(object, "given_back_bytes", grown->given_back_bytes);
    json_set_bytes(object, "given_back_count", grown->given_back_count);
    json_set(age, "oldest", json_count(grown->oldest_steps));
    json_set(age, "median", json_count(grown->median_steps));
    json_set(object, "age_steps", age);
    json_set(object, "rises_and_falls", json_boolean(grown->falls));
    json_set(object, "confidence",
             json_string(grown->confidence == VS_GROWTH_HIGH ? "high" : "medium"));
    const struct vs_place *place = &report->places->items[grown->place];
    json_set(object, "expected",
             json_boolean(grown->object == 0 &&
                          vs_categories_rule(report->categories, report->places, place) ==
                              VS_RULE_WORKSPACE));
    json_set(object, "step_source",
             json_string(vs_step_source_name(vs_grown_source(report->grown, grown))));
    json_set(object, "step_confidence", json_real(report->grown->steps.confidence));
    return object;
}

json_t *report_json_growth(const struct report *report)
{
    const struct vs_grown_list *grown = report->grown;
    json_t *list = json_array();
    for (size_t i = 0; i < grown->count; i++) {
        const struct vs_site *site = vs_state_site(report->summary->state, grown->items[i].site);
        if (!report_hides_device(report, site->device))
            json_array_append_new(list, grown_json(report, &grown->items[i]));
    }
    return list;
}
