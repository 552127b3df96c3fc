/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lists around nvidia-smi's page: `nvidia-smi --query-gpu=…` and `--query-compute-apps=…`
 * as CSV with a header, `nvidia-smi pmon -s m`, gpustat. All in MiB, whatever they write.
 */
#include <string.h>

#include "paste.h"

static const struct {
    const char *name;
    enum column column;
} names[] = {
    {"index", COLUMN_GPU},
    {"gpu", COLUMN_GPU},
    {"pid", COLUMN_PID},
    {"process_name", COLUMN_NAME},
    {"command", COLUMN_NAME},
    {"name", COLUMN_NAME},
    {"used_gpu_memory [MiB]", COLUMN_PROCESS_USED},
    {"used_memory [MiB]", COLUMN_PROCESS_USED},
    {"fb", COLUMN_PROCESS_USED},
    {"memory.used [MiB]", COLUMN_USED},
    {"memory.total [MiB]", COLUMN_TOTAL},
    {"memory.free [MiB]", COLUMN_FREE},
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* The next field, without the blanks around it. */
static bool next_field(struct cursor *line, bool commas, struct cursor *field)
{
    cursor_blank(line);
    if (line->at == line->end)
        return false;
    const char *stop = line->at;
    while (stop < line->end && (commas ? *stop != ',' : !is_blank(*stop)))
        stop++;
    *field = (struct cursor){line->at, stop};
    line->at = stop < line->end ? stop + 1 : stop;
    while (field->end > field->at && is_blank(field->end[-1]))
        field->end--;
    return true;
}

static enum column column_of(struct cursor field)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if ((size_t)(field.end - field.at) == strlen(names[i].name) &&
            memcmp(field.at, names[i].name, strlen(names[i].name)) == 0)
            return names[i].column;
    return COLUMN_OTHER;
}

/* True, and the list begins, if this is the header of one that has memory in it. */
static bool header(struct list *list, struct cursor line)
{
    struct list found = {.commas = !cursor_take(&line, "#")};
    struct cursor field;
    bool memory = false, who = false;
    while (found.count < LIST_COLUMNS && next_field(&line, found.commas, &field)) {
        enum column column = column_of(field);
        memory |= column >= COLUMN_PROCESS_USED;
        who |= column == COLUMN_PID || column >= COLUMN_USED;
        found.columns[found.count++] = (unsigned char)column;
    }
    if (!memory || !who)
        return false;
    *list = found;
    return true;
}

struct row {
    uint64_t gpu, pid;
    bool gpu_known, pid_known;
    struct amount process_used, used, total, free;
    struct cursor name;
};

static void take_field(struct row *row, enum column column, struct cursor field)
{
    struct cursor figure = field;
    struct amount amount = cursor_amount_in(&figure, "MiB");
    switch (column) {
    case COLUMN_GPU:
        row->gpu_known = cursor_count(&field, &row->gpu) && row->gpu < 4096;
        break;
    case COLUMN_PID:
        row->pid_known = cursor_count(&field, &row->pid);
        break;
    case COLUMN_NAME:
        row->name = field;
        break;
    case COLUMN_PROCESS_USED:
        row->process_used = amount;
        break;
    case COLUMN_USED:
        row->used = amount;
        break;
    case COLUMN_TOTAL:
        row->total = amount;
        break;
    case COLUMN_FREE:
        row->free = amount;
        break;
    default:
        break;
    }
}

static void keep_row(struct paste *paste, struct row *row)
{
    int gpu = row->gpu_known ? (int)row->gpu : -1;
    if (!row->used.known)
        row->used = amount_rest(row->total, row->free);
    if (row->used.known && row->total.known)
        smi_keep_gpu(&paste->smi, gpu < 0 ? paste->list.rows : gpu, -1, row->used, row->total);
    struct smi_process process = {
        .gpu = gpu, .instance = -1, .pid = row->pid, .used = row->process_used};
    if (row->pid_known)
        smi_keep_process(&paste->smi, &process, row->name);
}

static void read_row(struct paste *paste, struct cursor line)
{
    struct list *list = &paste->list;
    struct row row = {.name = {line.at, line.at}};
    struct cursor field;
    size_t count = 0;
    while (count < list->count && next_field(&line, list->commas, &field))
        take_field(&row, (enum column)list->columns[count++], field);
    /* A command may have blanks of its own; a short line ends the list. */
    if (count < list->count) {
        list->count = 0;
        return;
    }
    keep_row(paste, &row);
    list->rows++;
}

/* ---- gpustat ---------------------------------------------------------------------------- */

/* "alice(12044M) bob:python/4711(11112M)" */
static void users(struct smi *smi, int gpu, struct cursor line)
{
    struct cursor word;
    while (next_field(&line, false, &word)) {
        struct cursor size = word, name = word;
        if (!cursor_find(&size, "(", 64))
            continue;
        name.end = size.at - 1;
        struct smi_process process = {.gpu = gpu, .instance = -1, .used = cursor_amount(&size)};
        struct cursor pid = name;
        if (cursor_find(&pid, "/", 64))
            cursor_count(&pid, &process.pid);
        if (process.used.known)
            smi_keep_process(smi, &process, name);
    }
}

/* "[0] NVIDIA GeForce RTX 3090 | 47'C,  97 % |": to what is behind it. */
static bool gpustat_device(struct cursor *line, uint64_t *index)
{
    while (cursor_find(line, "[", PASTE_LINE)) {
        struct cursor ahead = *line;
        if (!cursor_count(&ahead, index) || *index >= 4096 || !cursor_take(&ahead, "] "))
            continue;
        *line = ahead;
        return cursor_find(line, "'C", 120) && cursor_find(line, "% |", 40);
    }
    return false;
}

/* "… 23311 / 24576 MB | alice(12044M)" */
static void gpustat_line(struct paste *paste, struct cursor line)
{
    uint64_t index;
    if (!gpustat_device(&line, &index))
        return;
    struct amount used = cursor_amount_in(&line, "MB");
    cursor_blank(&line);
    if (!used.known || !cursor_take(&line, "/"))
        return;
    struct amount total = cursor_amount(&line);
    cursor_blank(&line);
    if (!total.known || !cursor_take(&line, "|"))
        return;
    smi_keep_gpu(&paste->smi, (int)index, -1, used, total);
    users(&paste->smi, (int)index, line);
}

void list_line(struct paste *paste, struct cursor whole)
{
    struct cursor line = whole;
    gpustat_line(paste, whole);
    prefix_skip(&line);
    /* pmon's second line of header */
    if (cursor_has(line, "# Idx", 5) || header(&paste->list, line))
        return;
    if (paste->list.count > 0)
        read_row(paste, line);
}
