/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One self-contained HTML page. The trace is read twice: once for the figures, the
 * findings and the thinned curves, which say where the interesting instants are, and
 * once more for what was live at these.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "formats.h"
#include "html_page.h"

enum { STRETCHES_IN_ALL = 6000, STRETCHES_LEAST = 1000 };
/* Instants beside the key ones: two of each part of the curve. */
enum { PARTS_IN_ALL = 160, PARTS_LEAST = 24 };

/* ---- first reading -----------------------------------------------------------------------------
 */

static struct vs_html_device *device_of(struct vs_html *html, int8_t device)
{
    struct vs_html_device **slot = &html->devices[device + VS_DEVICE_OFFSET];
    if (*slot != NULL)
        return *slot;
    *slot = calloc(1, sizeof(**slot));
    if (*slot == NULL || vs_html_curve_init(&(*slot)->curve, html->stretches_each) != 0)
        html->error = -ENOMEM;
    else
        html->device_count++;
    return html->error == 0 ? *slot : NULL;
}

/*
 * A peak that is not the value of now was there when a window began: it was
 * reached by the last event before.
 */
static void note_peak(struct vs_html_peak *peak, uint64_t mark, bool is_now,
                      const struct vs_html_row *row, const struct vs_html_row *before)
{
    if (mark == peak->mark)
        return;
    peak->mark = mark;
    peak->sequence = is_now ? row->sequence : before->sequence;
    peak->time_ns = is_now ? row->time_ns : before->time_ns;
}

static void note_peaks(struct vs_html_device *kept, const struct vs_device_state *device,
                       const struct vs_html_row *row)
{
    for (int layer = 0; layer < VS_LAYERS; layer++) {
        const struct vs_layer_total *total = &device->layers[layer];
        note_peak(&kept->live[layer], total->peak_epoch, total->live_bytes == total->peak_bytes,
                  row, &kept->before);
    }
    note_peak(&kept->reserved, (uint64_t)device->reserved_peak,
              vs_device_reserved(device) == device->reserved_peak, row, &kept->before);
    if (device->measured)
        note_peak(&kept->used, (uint64_t)device->used_peak, device->used_bytes == device->used_peak,
                  row, &kept->before);
}

/* The window begins with what the events before it left. */
static void begin_curve(const struct vs_html *html, struct vs_html_device *kept)
{
    kept->before.time_ns = vs_export_since(html->export, html->export->from_ns);
    struct vs_html_row first = kept->before;
    vs_html_curve_add(&kept->curve, &first);
}

static void on_row(void *self, const struct vs_state *state, const struct vs_device_state *device,
                   const struct vs_bands *bands, struct vs_free_blocks *free_blocks)
{
    struct vs_html *html = self;
    const struct vs_export *export = html->export;
    (void)free_blocks;
    if (bands == NULL || (export->device >= 0 && device->device != export->device))
        return; /* in a gap of a cut trace the curve goes on as it was */
    struct vs_html_device *kept = device_of(html, device->device);
    if (kept == NULL)
        return;
    struct vs_html_row row;
    vs_html_row_of(state, device, bands, &row);
    if (export->at == VS_AT_TIME && state->now_ns <= export->moment_ns)
        kept->asked = row;
    if (state->now_ns < export->from_ns) {
        kept->before = row;
        return;
    }
    if (kept->curve.rows == 0 && kept->before.sequence != 0)
        begin_curve(html, kept);
    note_peaks(kept, device, &row);
    vs_html_curve_add(&kept->curve, &row);
}

static long frames_of(void *self, uint32_t stack, const struct vs_frame **out)
{
    return vs_frames_of(self, stack, out);
}

static size_t shared_out(size_t all, size_t least, size_t parts)
{
    size_t each = all / (parts == 0 ? 1 : parts);
    return each < least ? least : each;
}

static int read_first(struct vs_html *html)
{
    struct vs_export *export = html->export;
    bool windowed = export->window.has_from || export->window.has_to;
    size_t devices = export->device >= 0 ? 1 : vs_reader_device_count(export->reader);
    html->stretches_each = shared_out(STRETCHES_IN_ALL, STRETCHES_LEAST, devices);
    int result = vs_summary_load_rows(export->path, windowed ? &export->window : NULL, on_row, html,
                                      &html->summary, export->error);
    if (result == 0)
        result = html->error;
    if (result == 0)
        result = vs_frames_new(html->summary->reader, &html->frames);
    struct vs_stack_source source = {html->frames, frames_of};
    if (result == 0)
        result = vs_places_create(html->summary->state, &html->summary->sites, &source, VS_BY_STACK,
                                  &html->places);
    if (result == 0)
        result = vs_growth_find(&html->summary->growth, &html->places, &html->grown);
    return result;
}

/* ---- which instants
 * ------------------------------------------------------------------------------ */

static int want_row(struct vs_html *html, int8_t device, const struct vs_html_row *row,
                    unsigned reason)
{
    return row->sequence == 0
               ? 0
               : vs_html_sets_want(&html->sets, device, row->sequence, row->time_ns, reason);
}

static int want_peak(struct vs_html *html, int8_t device, const struct vs_html_peak *peak,
                     unsigned reason)
{
    return peak->sequence == 0
               ? 0
               : vs_html_sets_want(&html->sets, device, peak->sequence, peak->time_ns, reason);
}

/* The highest and the lowest row of `parts` stretches of the curve. */
static int want_samples(struct vs_html *html, int8_t device, const struct vs_html_curve *curve,
                        size_t parts)
{
    int result = 0;
    for (size_t part = 0; part < parts && result == 0; part++) {
        size_t from = curve->count * part / parts, to = curve->count * (part + 1) / parts;
        const struct vs_html_row *low = NULL, *high = NULL;
        for (size_t i = from; i < to; i++) {
            const struct vs_html_row *kept = curve->stretches[i].kept;
            if (low == NULL ||
                kept[VS_HTML_LOW_LIVE].value[VS_HTML_LIVE] < low->value[VS_HTML_LIVE])
                low = &kept[VS_HTML_LOW_LIVE];
            if (high == NULL ||
                kept[VS_HTML_HIGH_LIVE].value[VS_HTML_LIVE] > high->value[VS_HTML_LIVE])
                high = &kept[VS_HTML_HIGH_LIVE];
        }
        if (low != NULL)
            result = want_row(html, device, low, VS_HTML_SAMPLED);
        if (high != NULL && result == 0)
            result = want_row(html, device, high, VS_HTML_SAMPLED);
    }
    return result;
}

static int want_of_device(struct vs_html *html, int8_t device, const struct vs_html_device *kept)
{
    const struct vs_device_state *state = vs_state_device(html->summary->state, device);
    uint64_t end_ns = html->summary->windowed ? html->summary->to_ns : html->summary->duration_ns;
    int results[] = {
        want_samples(html, device, &kept->curve,
                     shared_out(PARTS_IN_ALL, PARTS_LEAST, html->device_count)),
        want_peak(html, device, &kept->live[vs_device_top_layer(state)], VS_HTML_PEAK_LIVE),
        want_peak(html, device, &kept->reserved, VS_HTML_PEAK_RESERVED),
        want_peak(html, device, &kept->used, VS_HTML_PEAK_DEVICE),
        want_row(html, device, &kept->asked, VS_HTML_ASKED),
        vs_html_sets_want(&html->sets, device, UINT64_MAX, end_ns, VS_HTML_AT_END),
    };
    for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++)
        if (results[i] != 0)
            return results[i];
    return 0;
}

static int want_ooms(struct vs_html *html)
{
    const struct vs_ooms *ooms = &html->summary->ooms;
    size_t wanted = 0;
    int result = 0;
    for (size_t i = ooms->count; i-- > 0 && wanted < VS_HTML_OOM_SETS && result == 0;) {
        const struct vs_oom *oom = &ooms->items[i];
        if (oom->device < 0 || html->devices[oom->device + VS_DEVICE_OFFSET] == NULL)
            continue;
        result = vs_html_sets_want(&html->sets, oom->device, oom->sequence,
                                   vs_summary_at(html->summary, oom->time_ns), VS_HTML_AT_OOM);
        wanted++;
    }
    return result;
}

static int choose_instants(struct vs_html *html)
{
    int result = 0;
    for (int slot = 0; slot < VS_DEVICE_SLOTS && result == 0; slot++)
        if (html->devices[slot] != NULL)
            result = want_of_device(html, (int8_t)(slot - VS_DEVICE_OFFSET), html->devices[slot]);
    return result == 0 ? want_ooms(html) : result;
}

/* ---- the page
 * -------------------------------------------------------------------------------------- */

static void release(struct vs_html *html)
{
    for (int slot = 0; slot < VS_DEVICE_SLOTS; slot++) {
        if (html->devices[slot] != NULL)
            vs_html_curve_release(&html->devices[slot]->curve);
        free(html->devices[slot]);
    }
    vs_html_sets_release(&html->sets);
    vs_grown_release(&html->grown);
    vs_places_release(&html->places);
    vs_frames_free(html->frames);
    vs_summary_free(html->summary);
    free(html);
}

int vs_export_html(struct vs_export *export)
{
    if (vs_html_head_bytes == 0)
        return vs_export_refuse(export,
                                "this vramscope was built without d3, which the page needs: "
                                "scripts/install-deps, then build again");
    if (export->last != 0)
        return vs_export_refuse_last(export);
    struct vs_html *html = calloc(1, sizeof(*html));
    if (html == NULL)
        return -ENOMEM;
    html->export = export;
    int result = read_first(html);
    if (result == 0)
        result = choose_instants(html);
    if (result == 0)
        result = vs_html_sets_take(&html->sets, export);
    if (result == 0) {
        vs_sink_put(export->sink, vs_html_head, vs_html_head_bytes);
        result = vs_html_write_data(html);
        vs_sink_put(export->sink, vs_html_tail, vs_html_tail_bytes);
    }
    release(html);
    return result;
}
