/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages of nvidia-smi: devices, MIG slices, processes, in the layouts since driver 340.
 * Figures are whole MiB. A device is two or three rows: the first names it, the next has
 * "used / total".
 */
#include "paste.h"

#include <string.h>

enum { NO_INSTANCE = -1 };

static struct smi_gpu *find_gpu(struct smi *smi, int index, int instance)
{
    for (size_t i = 0; i < smi->gpu_count; i++)
        if (smi->gpus[i].index == index && smi->gpus[i].instance == instance)
            return &smi->gpus[i];
    return NULL;
}

void smi_keep_gpu(struct smi *smi, int index, int instance, struct amount used, struct amount total)
{
    struct smi_gpu *gpu = find_gpu(smi, index, instance);
    if (gpu == NULL) {
        if (smi->gpu_count == PASTE_GPUS)
            return;
        gpu = &smi->gpus[smi->gpu_count++];
    }
    *gpu = (struct smi_gpu){index, instance, used, total};
    smi->listed[gpu - smi->gpus] = (struct amount){0};
    smi->seen = true;
}

/* "11MiB / 9728MiB" anywhere in the row. */
static bool used_of_total(struct cursor line, struct amount *used, struct amount *total)
{
    struct cursor at = line;
    while (cursor_find(&at, "MiB /", PASTE_LINE)) {
        *total = cursor_amount(&at);
        const char *end = at.at;
        at.at = line.at;
        *used = (struct amount){0};
        while (at.at < end && !used->known) {
            struct cursor number = at;
            *used = cursor_amount(&number);
            cursor_blank(&number);
            if (used->known && cursor_take(&number, "/") && number.at <= end &&
                used->rounding == 1 << 20)
                return total->known;
            *used = (struct amount){0};
            at.at++;
        }
        at.at = end;
    }
    return false;
}

static bool bar_number(struct cursor *line, uint64_t *value)
{
    cursor_blank(line);
    return cursor_take(line, "|") && (cursor_blank(line), cursor_count(line, value)) &&
           *value < 4096;
}

/* "|  0    7   0   0  | …": GPU, GPU instance, compute instance, MIG device. */
static bool mig_numbers(struct cursor line, uint64_t *gpu, uint64_t *instance)
{
    if (!bar_number(&line, gpu))
        return false;
    cursor_blank(&line);
    return cursor_count(&line, instance) && *instance < 4096;
}

static void device_rows(struct smi *smi, struct cursor line)
{
    struct amount used, total;
    uint64_t index, instance;
    struct cursor start = line;
    bool memory = used_of_total(line, &used, &total);
    if (smi->in_mig) {
        if (memory && mig_numbers(line, &index, &instance))
            smi_keep_gpu(smi, (int)index, (int)instance, used, total);
        return;
    }
    if (!memory && bar_number(&start, &index) && start.at < start.end && *start.at == ' ')
        smi->last_index = (int)index;
    else if (memory && smi->last_index >= 0 && !cursor_has(line, "BAR1", PASTE_LINE)) {
        smi_keep_gpu(smi, smi->last_index, NO_INSTANCE, used, total);
        smi->last_index = -1;
    }
}

/* ---- processes -------------------------------------------------------------------------- */

static struct cursor next_word(struct cursor *line)
{
    cursor_blank(line);
    struct cursor word = {line->at, line->at};
    while (line->at < line->end && *line->at != ' ' && *line->at != '\t' && *line->at != '|')
        line->at++;
    word.end = line->at;
    return word;
}

static bool is_word(struct cursor word, const char *text)
{
    return (size_t)(word.end - word.at) == strlen(text) && memcmp(word.at, text, strlen(text)) == 0;
}

static void copy_name(struct smi_process *process, struct cursor word)
{
    size_t length = (size_t)(word.end - word.at), room = sizeof(process->name) - 1;
    const char *from = length > room ? word.end - room : word.at;
    size_t kept = 0;
    for (; from < word.end; from++)
        if (*from > ' ' && *from < 127)
            process->name[kept++] = *from;
    process->name[kept] = 0;
}

static void add_listed(struct smi *smi, struct smi_process *process)
{
    /* A list of one device's machine need not name it. */
    if (process->gpu < 0 && smi->gpu_count == 1)
        process->gpu = smi->gpus[0].index;
    struct smi_gpu *gpu = find_gpu(smi, process->gpu, process->instance);
    if (gpu == NULL)
        gpu = find_gpu(smi, process->gpu, NO_INSTANCE);
    if (!process->used.known)
        return;
    smi->all_listed =
        smi->all_listed.known ? amount_sum(smi->all_listed, process->used) : process->used;
    if (gpu == NULL)
        return;
    struct amount *sum = &smi->listed[gpu - smi->gpus];
    *sum = sum->known ? amount_sum(*sum, process->used) : process->used;
}

/* Keeps the largest ones, in descending order. */
static void keep_process(struct smi *smi, const struct smi_process *process)
{
    size_t at = smi->process_count;
    if (at == PASTE_PROCESSES) {
        if (process->used.bytes <= smi->processes[at - 1].used.bytes)
            return;
        at--;
    } else {
        smi->process_count++;
    }
    for (; at > 0 && smi->processes[at - 1].used.bytes < process->used.bytes; at--)
        smi->processes[at] = smi->processes[at - 1];
    smi->processes[at] = *process;
}

void smi_keep_process(struct smi *smi, struct smi_process *process, struct cursor name)
{
    copy_name(process, name);
    add_listed(smi, process);
    keep_process(smi, process);
}

/* "| 0 [7 0 | N/A N/A] 1234 C python 4903MiB |": GPU, then the pid before the type. */
static void process_row(struct smi *smi, struct cursor line)
{
    struct smi_process process = {.instance = NO_INSTANCE};
    uint64_t gpu, number;
    if (!bar_number(&line, &gpu))
        return;
    process.gpu = (int)gpu;
    for (int i = 0; i < 3; i++) {
        struct cursor word = next_word(&line), digits = word;
        bool numeric = cursor_count(&digits, &number) && digits.at == digits.end;
        struct cursor ahead = line;
        struct cursor type = next_word(&ahead);
        bool typed = is_word(type, "C") || is_word(type, "G") || is_word(type, "C+G") ||
                     is_word(type, "M+C");
        if (numeric && typed) {
            process.pid = number;
            line = ahead;
            break;
        }
        if (i == 0 && numeric && number < 4096)
            process.instance = (int)number;
        else if (i == 2)
            return;
    }
    if (process.pid == 0)
        return;
    struct cursor name = next_word(&line);
    /* The name may have blanks; the first word that is a size is the memory. */
    struct cursor word = next_word(&line);
    while (word.at < word.end && !process.used.known) {
        if (cursor_has(word, "MiB", 24))
            process.used = cursor_amount(&word);
        word = next_word(&line);
    }
    smi_keep_process(smi, &process, name);
}

void smi_line(struct paste *paste, struct cursor line)
{
    struct smi *smi = &paste->smi;
    if (cursor_has(line, "NVIDIA-SMI", PASTE_LINE)) {
        /* A later page stands for the whole. */
        *smi = (struct smi){.last_index = -1, .seen = smi->seen};
    }
    if (cursor_has(line, "MIG devices:", PASTE_LINE)) {
        smi->in_mig = true;
        smi->in_processes = false;
    } else if (cursor_has(line, "Processes:", PASTE_LINE)) {
        smi->in_processes = true;
    } else if (cursor_has(line, "No running processes found", PASTE_LINE)) {
        smi->nothing_listed = true;
    } else if (smi->in_processes) {
        process_row(smi, line);
    } else {
        smi->not_supported |= cursor_has(line, "| Not Supported", PASTE_LINE);
        device_rows(smi, line);
    }
}
