/* SPDX-License-Identifier: Apache-2.0 */
/* "categories" of a device, and the category of a site with the rule that decided it. */
#include "report_json.h"

static json_t *sums_json(const int64_t *bytes)
{
    json_t *object = json_object();
    for (int i = 0; i < VS_CATEGORIES; i++)
        json_set_bytes(object, vs_category_name((enum vs_category)i), bytes[i]);
    return object;
}

json_t *report_json_categories(const struct report *report, const struct vs_device_state *device)
{
    struct vs_category_sums sums = vs_categories_sum(report->categories, report->places,
                                                     device->device, vs_device_top_layer(device));
    json_t *object = json_object();
    json_set(object, "at_peak", sums_json(sums.at_peak));
    json_set(object, "at_end", sums_json(sums.at_end));
    return object;
}

void report_json_category(const struct report *report, const struct vs_place *place, json_t *object)
{
    enum vs_category_rule rule = vs_categories_rule(report->categories, report->places, place);
    const char *name = vs_rule_name(rule);
    json_set(object, "category", json_string(vs_category_name(vs_rule_category(rule))));
    json_set(object, "category_rule", name == NULL ? json_null() : json_string(name));
}
