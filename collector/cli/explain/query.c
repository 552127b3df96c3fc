/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `nvidia-smi -q`, whole or with -d MEMORY: a line for each figure, devices in their order,
 * "FB Memory Usage" the memory of the device, "BAR1 Memory Usage" another one.
 */
#include <string.h>

#include "paste.h"

/* "Used GPU Memory               : 23044 MiB": the name must be all that is before the colon. */
static bool take_name(struct cursor *line, const char *name)
{
    struct cursor ahead = *line;
    cursor_blank(&ahead);
    if (!cursor_take(&ahead, name))
        return false;
    cursor_blank(&ahead);
    if (ahead.at < ahead.end && !cursor_take(&ahead, ":"))
        return false;
    cursor_blank(&ahead);
    *line = ahead;
    return true;
}

static void memory_line(struct paste *paste, struct cursor line)
{
    struct query *query = &paste->query;
    struct amount used = {0};
    if (take_name(&line, "Total"))
        query->total = cursor_amount(&line);
    else if (take_name(&line, "Used"))
        used = cursor_amount(&line);
    else if (take_name(&line, "Free"))
        query->in_memory = false;
    if (used.known && query->total.known)
        smi_keep_gpu(&paste->smi, query->gpus - 1, -1, used, query->total);
}

static void process_line(struct paste *paste, struct cursor line)
{
    struct query *query = &paste->query;
    struct smi_process process = {.gpu = query->gpus - 1, .instance = -1, .pid = query->pid};
    if (take_name(&line, "Process ID")) {
        query->pid = 0;
        cursor_count(&line, &query->pid);
    } else if (query->pid != 0 && take_name(&line, "Name")) {
        size_t length = (size_t)(line.end - line.at), room = sizeof(query->name) - 1;
        query->name_length = length < room ? length : room;
        memcpy(query->name, line.end - query->name_length, query->name_length);
    } else if (query->pid != 0 && take_name(&line, "Used GPU Memory")) {
        process.used = cursor_amount(&line);
        smi_keep_process(&paste->smi, &process, cursor_of(query->name, query->name_length));
        query->pid = 0;
        query->name_length = 0;
    }
}

void query_line(struct paste *paste, struct cursor line)
{
    struct query *query = &paste->query;
    struct cursor ahead = line;
    if (cursor_has(line, "NVSMI LOG", PASTE_LINE)) {
        paste->smi = (struct smi){.last_index = -1, .seen = paste->smi.seen};
        *query = (struct query){.seen = true};
    }
    if (!query->seen)
        return;
    if (cursor_take(&ahead, "GPU ") && cursor_has(ahead, ":", 12)) {
        query->gpus++;
        query->in_memory = false;
    }
    if (take_name(&line, "FB Memory Usage")) {
        query->in_memory = query->gpus > 0;
        query->total = (struct amount){0};
    } else if (take_name(&line, "Processes")) {
        paste->smi.nothing_listed = true; /* until one is */
        query->in_memory = false;
    } else if (query->in_memory) {
        memory_line(paste, line);
    } else if (query->gpus > 0) {
        process_line(paste, line);
    }
}
