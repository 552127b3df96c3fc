/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folded stacks, one place a line, the outermost frame first: what flame graph
 * tools read. Lines that begin with "#" say what was left out.
 */
#include <inttypes.h>
#include <stdio.h>

#include "formats.h"
#include "profile.h"

/* A ";" would end the frame, a line's end the stack. */
static void put_part(struct vs_sink *sink, const char *text)
{
    while (*text != 0) {
        size_t plain = strcspn(text, ";\n\r");
        vs_sink_put(sink, text, plain);
        text += plain;
        if (*text == 0)
            break;
        vs_sink_text(sink, *text == ';' ? "," : " ");
        text++;
    }
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

static void put_place(struct vs_sink *sink, const char *place, uint32_t line)
{
    vs_sink_text(sink, " (");
    put_part(sink, place);
    if (line != 0)
        vs_sink_printf(sink, ":%" PRIu32, line);
    vs_sink_text(sink, ")");
}

static void put_frame(struct vs_sink *sink, const struct vs_frame *frame)
{
    const char *module = frame->module == NULL ? "?" : file_name(frame->module);
    if (frame->kind == VS_FRAME_NOTE) {
        vs_sink_printf(sink, "[");
        put_part(sink, frame->function);
        vs_sink_text(sink, "]");
    } else if (frame->kind == VS_FRAME_PYTHON) {
        put_part(sink, frame->function == NULL ? "?" : frame->function);
        put_place(sink, frame->file == NULL ? "?" : frame->file, frame->line);
    } else if (frame->function == NULL) {
        put_part(sink, module);
        vs_sink_printf(sink, "+0x%" PRIx64, frame->address);
    } else {
        put_part(sink, frame->function);
        put_place(sink, module, 0);
    }
}

static int put_stack(struct vs_profile *profile, const struct vs_profile_sample *sample)
{
    struct vs_sink *sink = profile->export->sink;
    const struct vs_frame *frames;
    if (sample->stack == 0) {
        put_part(sink, sample->instead);
        return 0;
    }
    long count = vs_frames_of(profile->frames, sample->stack, &frames);
    bool any = false;
    for (long i = count; i-- > 0;) {
        if (!vs_profile_shows(&frames[i]))
            continue;
        if (any)
            vs_sink_text(sink, ";");
        put_frame(sink, &frames[i]);
        any = true;
    }
    if (!any)
        vs_sink_text(sink, "[no frames]");
    return count < 0 ? (int)count : 0;
}

static void put_head(const struct vs_export *export)
{
    char filter[256];
    vs_export_filter_text(export, filter, sizeof(filter));
    if (filter[0] != 0)
        vs_sink_printf(export->sink, "# vramscope export: only: %s\n", filter);
}

int vs_export_folded(struct vs_export *export)
{
    struct vs_profile profile;
    struct vs_profile_sample sample;
    int result = vs_profile_make(export, &profile);
    bool many = result == 0 && vs_profile_devices(&profile) > 1;
    if (result == 0)
        put_head(export);
    while (result == 0 && vs_profile_next(&profile, &sample)) {
        int64_t value = sample.values[export->metric];
        if (value == 0)
            continue;
        if (many)
            vs_sink_printf(export->sink, "GPU %d;", sample.device);
        result = put_stack(&profile, &sample);
        vs_sink_printf(export->sink, " %" PRId64 "\n", value);
        if (result == 0)
            result = export->sink->error;
    }
    vs_profile_release(&profile);
    return result;
}
