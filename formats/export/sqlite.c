/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An SQLite database: the tables below. Numbers of 64 bits are stored as SQLite
 * has them, signed. What was left out is in the table `trace`.
 */
#include <errno.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "formats.h"
#include "profile.h"
#include "replay/curve_row.h"
#include "seen.h"
#include "texts.h"

static const char schema[] =
    "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;" /* the file is thrown away on a failure */
    "CREATE TABLE trace(name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;"
    "CREATE TABLE event(sequence INTEGER, time_ns INTEGER, thread INTEGER, device INTEGER,"
    " kind TEXT, call TEXT, label TEXT, module TEXT, address INTEGER, size INTEGER,"
    " stream INTEGER, context INTEGER, pool INTEGER, handle INTEGER, extra0 INTEGER,"
    " extra1 INTEGER, free_bytes INTEGER, duration_ns INTEGER, result INTEGER, error TEXT,"
    " stack INTEGER, flags INTEGER);"
    "CREATE TABLE stack(id INTEGER PRIMARY KEY, frames INTEGER);"
    "CREATE TABLE frame(stack INTEGER, position INTEGER, kind TEXT, function TEXT, file TEXT,"
    " line INTEGER, module TEXT, address INTEGER, inlined INTEGER,"
    " PRIMARY KEY(stack, position)) WITHOUT ROWID;"
    "CREATE TABLE site(id INTEGER PRIMARY KEY, stack INTEGER, device INTEGER, layer TEXT,"
    " owner TEXT, label TEXT, segment INTEGER, allocs INTEGER, frees INTEGER, failed INTEGER,"
    " bytes INTEGER, peak_bytes INTEGER, peak_count INTEGER, end_bytes INTEGER,"
    " end_count INTEGER);"
    "BEGIN;";

enum { TRACE, EVENT, STACK, FRAME, SITE, SAMPLE, TABLES };
static const char *const inserts[SAMPLE] = {
    [TRACE] = "INSERT INTO trace VALUES(?,?)",
    [EVENT] = "INSERT INTO event VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
    [STACK] = "INSERT INTO stack VALUES(?,?)",
    [FRAME] = "INSERT INTO frame VALUES(?,?,?,?,?,?,?,?,?)",
    [SITE] = "INSERT INTO site VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
};

struct filling {
    struct vs_export *export;
    struct vs_profile profile;
    struct vs_timeline timeline;
    struct vs_texts *texts;
    struct vs_seen seen;
    sqlite3 *database;
    sqlite3_stmt *insert[TABLES];
    int column; /* bound last */
    int error;  /* sticky */
};

static int errno_of(int status)
{
    int kind = status & 0xff;
    return kind == SQLITE_FULL ? -ENOSPC : kind == SQLITE_NOMEM ? -ENOMEM : -EIO;
}

/* ---- rows ---------------------------------------------------------------------------------------
 */

static void put_number(struct filling *filling, int table, int64_t value)
{
    sqlite3_bind_int64(filling->insert[table], ++filling->column, value);
}

static void put_known(struct filling *filling, int table, int64_t value, bool known)
{
    if (known)
        put_number(filling, table, value);
    else
        sqlite3_bind_null(filling->insert[table], ++filling->column);
}

/* The text stays where it is until the row is done. NULL and "" are NULL. */
static void put_text(struct filling *filling, int table, const char *text, size_t bytes)
{
    sqlite3_stmt *insert = filling->insert[table];
    filling->column++;
    if (bytes == 0)
        sqlite3_bind_null(insert, filling->column);
    else
        sqlite3_bind_text64(insert, filling->column, text, bytes, SQLITE_STATIC, SQLITE_UTF8);
}

static void put_string(struct filling *filling, int table, const char *text)
{
    put_text(filling, table, text, text == NULL ? 0 : strlen(text));
}

static int end_row(struct filling *filling, int table)
{
    int status = sqlite3_step(filling->insert[table]);
    sqlite3_reset(filling->insert[table]);
    filling->column = 0;
    if (status != SQLITE_DONE && filling->error == 0)
        filling->error = errno_of(status);
    return filling->error;
}

/* ---- stacks -------------------------------------------------------------------------------------
 */

static int put_frame(struct filling *filling, uint32_t stack, long position,
                     const struct vs_frame *frame)
{
    static const char *const kinds[] = {
        [VS_FRAME_NATIVE] = "native", [VS_FRAME_PYTHON] = "python", [VS_FRAME_NOTE] = "note"};
    put_number(filling, FRAME, stack);
    put_number(filling, FRAME, position);
    put_string(filling, FRAME, kinds[frame->kind]);
    put_string(filling, FRAME, frame->function);
    put_string(filling, FRAME, frame->file);
    put_known(filling, FRAME, frame->line, frame->line != 0);
    put_string(filling, FRAME, frame->module);
    put_known(filling, FRAME, (int64_t)frame->address, frame->kind == VS_FRAME_NATIVE);
    put_number(filling, FRAME, frame->inlined);
    return end_row(filling, FRAME);
}

static int put_stack(struct filling *filling, uint32_t stack)
{
    int fresh = stack == 0 ? 0 : vs_seen_add(&filling->seen, stack);
    if (fresh <= 0)
        return fresh;
    const struct vs_frame *frames;
    long count = vs_frames_of(filling->profile.frames, stack, &frames);
    put_number(filling, STACK, stack);
    put_number(filling, STACK, count);
    end_row(filling, STACK);
    for (long i = 0; i < count && filling->error == 0; i++)
        put_frame(filling, stack, i, &frames[i]);
    return count < 0 ? (int)count : filling->error;
}

/* ---- samples and sites
 * --------------------------------------------------------------------------- */

static void on_sample(void *self, const struct vs_state *state,
                      const struct vs_device_state *device, const struct vs_bands *bands,
                      struct vs_free_blocks *free_blocks)
{
    struct filling *filling = self;
    const struct vs_export *export = filling->export;
    if (state->now_ns < export->from_ns || state->now_ns > export->to_ns ||
        (export->device >= 0 && device->device != export->device))
        return;
    struct vs_curve_row row;
    vs_curve_row(free_blocks, state, device, bands, &row);
    put_number(filling, SAMPLE, (int64_t)vs_export_since(export, state->now_ns));
    put_number(filling, SAMPLE, device->device);
    for (int i = 0; i < VS_CURVE_COLUMNS; i++)
        put_known(filling, SAMPLE, row.value[i], row.known[i]);
    end_row(filling, SAMPLE);
}

static bool is_left_out(const struct vs_export *export, const struct vs_site *site,
                        const struct vs_site_stats *stats)
{
    int64_t least = (int64_t) export->min_bytes;
    return (export->device >= 0 && site->device >= 0 && site->device != export->device) ||
           (stats->peak_bytes < least && stats->live_bytes < least);
}

static int put_site(struct filling *filling, size_t index)
{
    const struct vs_places *places = &filling->profile.places;
    const struct vs_place *place = &places->items[index];
    const struct vs_site *site = vs_places_site(places, place);
    const struct vs_site_stats *stats = &place->stats;
    const struct vs_state *state = filling->profile.state;
    if (is_left_out(filling->export, site, stats))
        return 0;
    int result = place->has_stack ? put_stack(filling, (uint32_t)place->number) : 0;
    put_number(filling, SITE, (int64_t)index + 1);
    put_known(filling, SITE, (int64_t)place->number, place->has_stack);
    put_known(filling, SITE, site->device, site->device >= 0);
    put_string(filling, SITE, vs_export_layer_name(site->layer));
    put_string(filling, SITE, vs_state_owner_name(state, site->owner));
    put_string(filling, SITE, vs_state_string(state, site->label));
    put_number(filling, SITE, site->segment);
    put_number(filling, SITE, (int64_t)stats->allocs);
    put_number(filling, SITE, (int64_t)stats->frees);
    put_number(filling, SITE, (int64_t)stats->failed);
    put_number(filling, SITE, (int64_t)stats->bytes);
    put_number(filling, SITE, stats->peak_bytes);
    put_number(filling, SITE, stats->peak_count);
    put_number(filling, SITE, stats->live_bytes);
    put_number(filling, SITE, stats->live_count);
    end_row(filling, SITE);
    return result != 0 ? result : filling->error;
}

static int put_sites(struct filling *filling)
{
    struct vs_export *export = filling->export;
    int result = vs_profile_begin(export, &filling->profile);
    if (result == 0)
        result = vs_timeline_start(&filling->timeline, filling->profile.state, on_sample, filling);
    if (result == 0)
        result = vs_profile_fold(&filling->profile);
    for (size_t i = 0; i < filling->profile.places.count && result == 0; i++)
        result = put_site(filling, i);
    return result != 0 ? result : filling->error;
}

/* ---- events
 * ---------------------------------------------------------------------------------------- */

static char *quote_nothing(char *out, const char *text)
{
    return vs_put_bytes(out, text, strlen(text));
}

static void put_name(struct filling *filling, struct vs_quoted text)
{
    put_text(filling, EVENT, text.data, text.bytes);
}

static void put_numbers(struct filling *filling, const struct vs_event *event)
{
    const uint64_t numbers[] = {event->address, event->size,   event->stream,   event->context,
                                event->pool,    event->handle, event->extra[0], event->extra[1]};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        put_number(filling, EVENT, (int64_t)numbers[i]);
    put_known(filling, EVENT, (int64_t)event->free_bytes, event->free_bytes != VS_FREE_UNKNOWN);
    put_number(filling, EVENT, event->duration_ns);
    put_number(filling, EVENT, event->result);
}

static int put_event(void *self, const struct vs_sequenced_event *sequenced)
{
    struct filling *filling = self;
    const struct vs_event *event = &sequenced->event;
    char buffer[32];
    int result = put_stack(filling, event->stack);
    put_number(filling, EVENT, (int64_t)sequenced->sequence);
    put_number(filling, EVENT, (int64_t)vs_export_since(filling->export, event->time_ns));
    put_number(filling, EVENT, sequenced->thread);
    put_known(filling, EVENT, event->device, event->device >= 0);
    put_string(filling, EVENT, vs_kind_name(event->kind));
    put_name(filling, vs_texts_string(filling->texts, event->call));
    put_name(filling, vs_texts_label(filling->texts, event));
    put_name(filling, vs_texts_module(filling->texts, event->module));
    put_numbers(filling, event);
    put_string(filling, EVENT,
               event->result == 0
                   ? NULL
                   : vs_export_error(filling->export, event, buffer, sizeof(buffer)));
    put_known(filling, EVENT, event->stack, event->stack != 0);
    put_number(filling, EVENT, event->flags);
    end_row(filling, EVENT);
    if (filling->texts->failed)
        result = -ENOMEM;
    return result != 0 ? result : filling->error;
}

/* ---- the database
 * ------------------------------------------------------------------------------------ */

static int put_fact(struct filling *filling, const char *name, const char *value)
{
    put_string(filling, TRACE, name);
    put_string(filling, TRACE, value);
    return end_row(filling, TRACE);
}

static int put_json(struct filling *filling, const char *name, const json_t *value)
{
    char *text = json_dumps(value, JSON_COMPACT);
    int result = text == NULL ? -ENOMEM : put_fact(filling, name, text);
    free(text);
    return result;
}

static int put_facts(struct filling *filling)
{
    char text[64];
    json_t *filter = vs_export_filter_json(filling->export);
    put_fact(filling, "schema", "vramscope-sqlite/1");
    snprintf(text, sizeof(text), "%" PRIu64, filling->export->start_ns);
    put_fact(filling, "start_ns", text);
    vs_export_at_text(filling->export, text, sizeof(text));
    put_fact(filling, "at", text);
    int result = put_json(filling, "filter", filter);
    json_decref(filter);
    return result != 0 ? result : put_json(filling, "process", filling->export->process);
}

/* The table of samples, whose columns are those of the curves. */
static int open_samples(struct filling *filling)
{
    char create[1024], insert[128];
    size_t created = (size_t)snprintf(create, sizeof(create),
                                      "CREATE TABLE sample(time_ns INTEGER, device INTEGER");
    size_t inserted = (size_t)snprintf(insert, sizeof(insert), "INSERT INTO sample VALUES(?,?");
    for (int i = 0; i < VS_CURVE_COLUMNS; i++) {
        created += (size_t)snprintf(create + created, sizeof(create) - created, ", %s INTEGER",
                                    vs_curve_columns[i]);
        inserted += (size_t)snprintf(insert + inserted, sizeof(insert) - inserted, ",?");
    }
    snprintf(create + created, sizeof(create) - created, ")");
    snprintf(insert + inserted, sizeof(insert) - inserted, ")");
    int status = sqlite3_exec(filling->database, create, NULL, NULL, NULL);
    return status != SQLITE_OK
               ? status
               : sqlite3_prepare_v2(filling->database, insert, -1, &filling->insert[SAMPLE], NULL);
}

static int open_database(struct filling *filling)
{
    int status = sqlite3_open(filling->export->file, &filling->database);
    if (status == SQLITE_OK)
        status = sqlite3_exec(filling->database, schema, NULL, NULL, NULL);
    if (status == SQLITE_OK)
        status = open_samples(filling);
    for (int i = 0; i < SAMPLE && status == SQLITE_OK; i++)
        status = sqlite3_prepare_v2(filling->database, inserts[i], -1, &filling->insert[i], NULL);
    return status == SQLITE_OK ? 0 : errno_of(status);
}

static int close_database(struct filling *filling, int result)
{
    for (int i = 0; i < TABLES; i++)
        sqlite3_finalize(filling->insert[i]);
    if (result == 0) {
        int status = sqlite3_exec(filling->database, "COMMIT", NULL, NULL, NULL);
        result = status == SQLITE_OK ? 0 : errno_of(status);
    }
    int closed = sqlite3_close(filling->database);
    return result == 0 && closed != SQLITE_OK ? errno_of(closed) : result;
}

int vs_export_sqlite(struct vs_export *export)
{
    struct filling *filling = calloc(1, sizeof(*filling));
    if (filling == NULL)
        return -ENOMEM;
    filling->export = export;
    filling->texts = vs_texts_new(export, quote_nothing);
    int result = filling->texts == NULL ? -ENOMEM : open_database(filling);
    if (result == 0)
        result = put_facts(filling);
    if (result == 0)
        result = put_sites(filling);
    if (result == 0)
        result = vs_export_each_chosen(export, put_event, filling);
    result = close_database(filling, result);
    vs_texts_free(filling->texts);
    vs_timeline_release(&filling->timeline);
    vs_profile_release(&filling->profile);
    vs_seen_release(&filling->seen);
    free(filling);
    return result;
}
