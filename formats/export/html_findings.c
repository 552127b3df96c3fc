/* SPDX-License-Identifier: Apache-2.0 */
/* What a page points out: failed requests, growth, marked phases. */
#include <inttypes.h>

#include "html_findings.h"

static void put_oom(struct vs_html_data *data, const struct vs_oom *oom)
{
    const struct vs_summary *summary = data->html->summary;
    struct vs_sink *sink = data->sink;
    vs_sink_printf(sink,
                   "\n{\"kind\":\"oom\",\"device\":%d,\"at_ns\":%" PRIu64 ",\"sequence\":%" PRIu64
                   ",\"requested\":%" PRIu64 ",\"handled\":%s,",
                   oom->device, vs_summary_at(summary, oom->time_ns), oom->sequence, oom->requested,
                   oom->handled ? "true" : "false");
    vs_html_integer_member_if(sink, "free", oom->free_bytes != VS_FREE_UNKNOWN,
                              (int64_t)oom->free_bytes);
    vs_sink_text(sink, ",");
    vs_html_text_member(data, "class", vs_oom_class_name(oom->class));
    vs_sink_text(sink, ",");
    vs_html_text_member(data, "why", oom->why);
    vs_sink_text(sink, ",");
    vs_html_text_member(data, "api", vs_state_string(summary->state, oom->label));
    vs_sink_text(sink, ",");
    vs_html_place_member(data, "place", oom->site);
    vs_sink_text(sink, "}");
}

static void put_grown(struct vs_html_data *data, const struct vs_grown *grown)
{
    const struct vs_state *state = data->html->summary->state;
    const struct vs_site *site = vs_state_site(state, grown->site);
    struct vs_sink *sink = data->sink;
    vs_sink_printf(sink, "\n{\"kind\":\"growth\",\"device\":%d,", site == NULL ? -1 : site->device);
    vs_html_text_member(
        data, "object",
        grown->object == 0 ? NULL : vs_object_name((enum vs_object_kind)(grown->object - 1)));
    vs_sink_printf(sink,
                   ",\"bytes_per_step\":%.17g,\"count_per_step\":%.17g,\"steps\":%" PRIu64
                   ",\"end_bytes\":%" PRId64 ",\"end_count\":%" PRId64
                   ",\"confidence\":\"%s\",\"behind_steps\":%s,",
                   grown->bytes_per_step, grown->count_per_step, grown->steps, grown->end_bytes,
                   grown->end_count, vs_growth_word(grown->confidence, grown->falls),
                   grown->behind ? "true" : "false");
    vs_html_place_member(data, "place", grown->site);
    vs_sink_text(sink, "}");
}

void vs_html_write_findings(struct vs_html_data *data)
{
    const struct vs_html *html = data->html;
    const struct vs_ooms *ooms = &html->summary->ooms;
    size_t first = ooms->count > VS_HTML_OOMS ? ooms->count - VS_HTML_OOMS : 0, listed = 0;
    bool any = false;
    vs_sink_text(data->sink, "\"findings\":[");
    for (size_t i = first; i < ooms->count; i++) {
        if (html->export->device >= 0 && ooms->items[i].device != html->export->device)
            continue;
        vs_html_next(data->sink, &any);
        put_oom(data, &ooms->items[i]);
    }
    for (size_t i = 0; i < html->grown.count && listed < VS_HTML_GROWN; i++, listed++) {
        vs_html_next(data->sink, &any);
        put_grown(data, &html->grown.items[i]);
    }
    vs_sink_printf(data->sink, "],\"ooms_left_out\":%" PRIu64 ",\"growth_left_out\":%zu,\n",
                   ooms->total - (ooms->count - first), html->grown.count - listed);
}

void vs_html_write_phases(struct vs_html_data *data)
{
    const struct vs_html *html = data->html;
    const struct vs_phases *phases = &html->summary->phases;
    size_t listed = 0, left_out = 0;
    bool any = false;
    vs_sink_text(data->sink, "\"phases\":[");
    for (size_t i = 0; i < phases->count; i++) {
        const struct vs_phase *phase = &phases->items[i];
        if (html->export->device >= 0 && phase->device != html->export->device)
            continue;
        if (listed == VS_HTML_PHASES) {
            left_out++;
            continue;
        }
        listed++;
        vs_html_next(data->sink, &any);
        vs_sink_printf(data->sink,
                       "\n{\"device\":%d,\"start_ns\":%" PRIu64 ",\"end_ns\":%" PRIu64
                       ",\"peak\":%" PRId64 ",",
                       phase->device, vs_summary_at(html->summary, phase->start_ns),
                       vs_summary_at(html->summary, phase->end_ns),
                       phase->peak.bytes[vs_phase_main_band(phase)]);
        char name[128];
        vs_phase_name(html->summary->state, phase, name, sizeof(name));
        vs_html_text_member(data, "name", name);
        vs_sink_text(data->sink, "}");
    }
    for (size_t i = 0; i < phases->sum_count; i++)
        if (html->export->device < 0 || phases->sums[i].first.device == html->export->device)
            left_out += phases->sums[i].count;
    vs_sink_printf(data->sink, "],\"phases_left_out\":%" PRIu64 ",\n", phases->omitted + left_out);
}
