/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks behind the end of a trace: see trace_append.h. */
#include "trace_append.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "packed.h"
#include "trace_chunk.h"
#include "trace_recovery.h"
#include "trace_source.h"
#include "trace_space.h"
#include "trace_table.h"

#define TABLE_BYTES (1U << 20) /* buffered rows are written when they reach this */
#define ZSTD_LEVEL 9
#define QUIET_SECONDS 5 /* where the system cannot say who writes: unchanged for so long */

struct vs_appender {
    int fd;
    int error; /* the first one; sticky */
    char *path;
    uint32_t file_tag;
    uint64_t old_bytes; /* of the file before us */
    uint64_t offset;
    uint64_t cut_at;      /* where its last whole chunk ends, if it was cut; 0: told, or not cut */
    uint64_t next_number; /* of a chunk */
    uint64_t next_row;    /* id of a row of SYMBOLS */
    struct vs_packer *packer;
    struct vs_bytes payload;
    struct vs_table symbols, facts;
};

static int say(struct vs_error *error, const char *path, int code, const char *what)
{
    snprintf(error->text, sizeof error->text, "%.300s: %s", path, what);
    return code;
}

/* ---- what the file is -------------------------------------------------------------- */

static bool written_lately(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && time(NULL) - status.st_mtime < QUIET_SECONDS;
}

/* Whether anybody has the file open for writing. */
static bool is_being_written(const char *path)
{
#ifdef F_SETLEASE
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0) {
        /* A read lease is given only where there is no writer. */
        int leased = fcntl(fd, F_SETLEASE, F_RDLCK), why = errno;
        close(fd);
        if (leased == 0 || why == EAGAIN)
            return leased != 0;
    }
#endif
    return written_lately(path);
}

/* Behind all that was ever written, what can no longer be read included. */
static void count_chunks(struct vs_appender *appender, const struct vs_index *index,
                         const struct vs_trace_status *status)
{
    uint64_t unseen = status->unknown_chunks + status->damaged_chunks + status->truncated;
    for (size_t i = 0; i < index->count; i++) {
        const struct vs_chunk_header *header = &index->refs[i].header;
        if (header->number >= appender->next_number)
            appender->next_number = header->number + 1;
        if (header->type == VS_CHUNK_SYMBOLS && header->mark >= appender->next_row)
            appender->next_row = header->mark + 1;
        appender->file_tag = header->file_tag;
    }
    appender->next_number += unseen;
    appender->cut_at = index->cut_at;
    appender->old_bytes = status->file_bytes;
    appender->offset = (status->file_bytes + VS_TRACE_ALIGN - 1) / VS_TRACE_ALIGN * VS_TRACE_ALIGN;
}

static int look_at(struct vs_appender *appender, bool being_written, struct vs_error *error)
{
    struct vs_source source;
    struct vs_index index;
    struct vs_trace_status status = {0};
    const char *path = appender->path;
    int result = vs_source_open(path, &source);
    if (result != 0)
        return say(error, path, result, strerror(-result));
    if (vs_packing_of(&source) != VS_PACKING_NONE) {
        vs_source_close(&source);
        return say(error, path, -ENOTSUP,
                   "is packed: unpack it, names are added to the trace itself");
    }
    result = vs_index_build(&source, &index, &status);
    if (result != 0 || index.count == 0)
        result = say(error, path, result != 0 ? result : -EINVAL, "not a trace that can be read");
    else if (index.circular)
        result = say(error, path, -ENOTSUP,
                     "a flight recorder's file has no end: nothing can be added to it");
    else if (!index.has_end && being_written)
        result = say(error, path, -EBUSY, "is still being written: wait for the program's end");
    else
        count_chunks(appender, &index, &status);
    vs_index_free(&index);
    vs_source_close(&source);
    return result;
}

/* ---- life -------------------------------------------------------------------------------- */

static void free_appender(struct vs_appender *appender)
{
    if (appender->fd >= 0)
        close(appender->fd);
    vs_table_free(&appender->symbols);
    vs_table_free(&appender->facts);
    vs_bytes_free(&appender->payload);
    vs_packer_free(appender->packer);
    free(appender->path);
    free(appender);
}

static int open_file(struct vs_appender *appender, struct vs_error *error)
{
    bool being_written = is_being_written(appender->path); /* before we are a writer ourselves */
    appender->fd = open(appender->path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (appender->fd < 0) {
        int code = -errno;
        snprintf(error->text, sizeof error->text, "cannot write %.300s: %s; work on a copy of it",
                 appender->path, strerror(-code));
        return code;
    }
    if (flock(appender->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return say(error, appender->path, -EBUSY, "names are being added to it already");
    return look_at(appender, being_written, error);
}

int vs_append_open(const char *path, struct vs_appender **out, struct vs_error *error)
{
    *out = NULL;
    struct vs_appender *appender = calloc(1, sizeof *appender);
    if (appender == NULL)
        return say(error, path, -ENOMEM, strerror(ENOMEM));
    appender->fd = -1;
    vs_table_init(&appender->symbols, VS_CHUNK_SYMBOLS);
    vs_table_init(&appender->facts, VS_CHUNK_META);
    appender->path = strdup(path);
    appender->packer = vs_packer_new(ZSTD_LEVEL);
    int result = appender->path == NULL || appender->packer == NULL
                     ? say(error, path, -ENOMEM, strerror(ENOMEM))
                     : open_file(appender, error);
    if (result != 0) {
        free_appender(appender);
        return result;
    }
    *out = appender;
    return 0;
}

/* ---- writing ------------------------------------------------------------------------------- */

/* Payload first, header last: until then the chunk does not exist. */
static int write_chunk(struct vs_appender *appender, struct vs_chunk_header *header,
                       const uint8_t *stored)
{
    static const uint8_t zeros[VS_TRACE_ALIGN];
    uint8_t encoded[VS_CHUNK_HEADER_BYTES];
    header->number = appender->next_number;
    header->file_tag = appender->file_tag;
    vs_chunk_header_encode(header, encoded);
    uint64_t body = appender->offset + VS_CHUNK_HEADER_BYTES;
    uint64_t body_end = body + header->stored_bytes;
    uint64_t next = appender->offset + vs_chunk_span(header);
    int error = vs_space_write(appender->fd, stored, header->stored_bytes, body);
    if (error == 0)
        error = vs_space_write(appender->fd, zeros, (size_t)(next - body_end), body_end);
    if (error == 0)
        error = vs_space_write(appender->fd, encoded, sizeof encoded, appender->offset);
    if (error == 0) {
        appender->offset = next;
        appender->next_number++;
    }
    return error;
}

/* That the file was cut shows no longer when more follows: room says so, and where. */
static int tell_cut(struct vs_appender *appender)
{
    struct vs_chunk_header header = {.type = VS_CHUNK_ROOM, .first = appender->cut_at};
    int error = appender->cut_at == 0 ? 0 : write_chunk(appender, &header, NULL);
    appender->cut_at = 0;
    return error;
}

static int write_table(struct vs_appender *appender, struct vs_table *table)
{
    const uint8_t *stored;
    if (table->rows > 0 && appender->error == 0)
        appender->error = tell_cut(appender);
    if (table->rows == 0 || appender->error != 0)
        return appender->error;
    struct vs_chunk_header header = {.type = table->shape->type,
                                     .first = table->lowest_id,
                                     .mark = table->highest_id,
                                     .count = (uint32_t)table->rows};
    appender->payload.bytes = 0;
    int error = vs_table_encode(table, &appender->payload);
    vs_table_clear(table);
    if (error == 0)
        error = vs_packer_pack(appender->packer, appender->payload.data, appender->payload.bytes,
                               &header, &stored);
    if (error == 0)
        error = write_chunk(appender, &header, stored);
    appender->error = error;
    return error;
}

static int add_row(struct vs_appender *appender, struct vs_table *table,
                   const struct vs_table_row *row)
{
    if (appender->error == 0)
        appender->error = vs_table_add(table, row);
    return appender->error;
}

int vs_append_symbol(struct vs_appender *appender, const struct vs_symbol_def *symbol)
{
    if (appender->error != 0)
        return appender->error;
    int error = vs_table_add_symbol(&appender->symbols, symbol, &appender->next_row);
    if (error == -EINVAL)
        return error;
    appender->error = error;
    return error != 0 || vs_table_bytes(&appender->symbols) < TABLE_BYTES
               ? error
               : write_table(appender, &appender->symbols);
}

int vs_append_meta(struct vs_appender *appender, const char *name, const char *json, size_t bytes)
{
    struct vs_table_row row = {.texts = {vs_text_of(name), {json, bytes}}};
    return bytes > VS_TABLE_TEXT_MAX_BYTES ? -EINVAL : add_row(appender, &appender->facts, &row);
}

int vs_append_close(struct vs_appender *appender, struct vs_error *error)
{
    write_table(appender, &appender->symbols);
    int result = write_table(appender, &appender->facts);
    if (result != 0 && ftruncate(appender->fd, (off_t)appender->old_bytes) == 0)
        snprintf(error->text, sizeof error->text, "cannot write %.300s: %s; the trace is as it was",
                 appender->path, strerror(-result));
    else if (result != 0)
        snprintf(error->text, sizeof error->text,
                 "cannot write %.300s: %s; what was in it stays readable", appender->path,
                 strerror(-result));
    free_appender(appender);
    return result;
}
