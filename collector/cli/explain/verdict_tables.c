/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables without a failed request: PyTorch's memory summary and nvidia-smi's page. They
 * show a state, and a class only where that state alone is the cause.
 */
#include <stdio.h>

#include "verdict.h"

static struct amount get(const struct verdict *verdict, enum number number)
{
    return verdict->subject.numbers[number];
}

/* ---- memory summary --------------------------------------------------------------------- */

static bool waiting(struct verdict *verdict)
{
    if (!is_share(get(verdict, NUMBER_PENDING), get(verdict, NUMBER_RESERVED), 25))
        return false;
    verdict_decide(verdict, "waiting_streams",
                   "of %s reserved, %s are freed but still wait for another stream",
                   size_of(verdict, NUMBER_RESERVED).text, size_of(verdict, NUMBER_PENDING).text);
    return true;
}

/* "Non-releasable" is free memory of segments that have a live block. */
static bool held_back(struct verdict *verdict)
{
    if (!is_share(get(verdict, NUMBER_NON_RELEASABLE), get(verdict, NUMBER_RESERVED), 25))
        return false;
    bool few = !is_share(get(verdict, NUMBER_ALLOCATED), get(verdict, NUMBER_RESERVED), 25);
    verdict_decide(
        verdict, few ? "pinned_segment" : "fragmented",
        few ? "%s of live blocks hold back %s of free memory in the same segments: of %s "
              "reserved, that much can neither be given back nor joined"
            : "beside %s of live blocks, %s lie free in pieces of the same segments, out "
              "of %s reserved",
        size_of(verdict, NUMBER_ALLOCATED).text, size_of(verdict, NUMBER_NON_RELEASABLE).text,
        size_of(verdict, NUMBER_RESERVED).text);
    return true;
}

void verdict_summary(const struct paste *paste, struct verdict *verdict)
{
    const struct summary_table *table = &paste->summary;
    struct amount reserved = get(verdict, NUMBER_RESERVED);
    message_fill(&verdict->subject, NUMBER_UNALLOCATED,
                 amount_rest(reserved, get(verdict, NUMBER_ALLOCATED)));
    if (table->ooms_known && table->ooms == 0)
        verdict_decide(verdict, "unknown",
                       "no request had failed when this was printed: %s allocated, %s reserved",
                       size_of(verdict, NUMBER_ALLOCATED).text,
                       size_of(verdict, NUMBER_RESERVED).text);
    else if (waiting(verdict) || held_back(verdict))
        return;
    else if (is_share(get(verdict, NUMBER_PEAK_ALLOCATED), get(verdict, NUMBER_TOTAL), 85))
        verdict_decide(verdict, "full", "the program's own blocks reached %s on a device of %s",
                       size_of(verdict, NUMBER_PEAK_ALLOCATED).text,
                       size_of(verdict, NUMBER_TOTAL).text);
    else
        verdict_decide(verdict, "unknown",
                       "%s of %s reserved are in use and little is held back: it is not "
                       "fragmentation inside PyTorch; the request and the device's size are not in "
                       "the table",
                       size_of(verdict, NUMBER_ALLOCATED).text,
                       size_of(verdict, NUMBER_RESERVED).text);
}

/* ---- nvidia-smi ------------------------------------------------------------------------- */

const struct smi_gpu *smi_device(const struct smi *smi, int index)
{
    const struct smi_gpu *best = NULL;
    bool sliced = false;
    for (size_t i = 0; i < smi->gpu_count; i++)
        sliced |= smi->gpus[i].instance >= 0;
    for (size_t i = 0; i < smi->gpu_count; i++) {
        const struct smi_gpu *gpu = &smi->gpus[i];
        /* A sliced device is its slices. */
        if ((index >= 0 && gpu->index != index) || (sliced && gpu->instance < 0))
            continue;
        double share = (double)gpu->used.bytes / (double)(gpu->total.bytes + 1);
        if (best == NULL || share > (double)best->used.bytes / (double)(best->total.bytes + 1))
            best = gpu;
    }
    return best;
}

static bool is_on(const struct smi_process *process, const struct smi_gpu *gpu)
{
    return process->gpu == gpu->index && process->instance == gpu->instance;
}

static void name_device(const struct smi_gpu *gpu, char *out, size_t room)
{
    if (gpu->instance >= 0)
        snprintf(out, room, "MIG slice %d of GPU %d", gpu->instance, gpu->index);
    else
        snprintf(out, room, "GPU %d", gpu->index);
}

struct users {
    size_t count, large;
    const struct smi_process *first, *second; /* by size */
};

static struct users users_of(const struct smi *smi, const struct smi_gpu *gpu)
{
    struct users users = {0};
    for (size_t i = 0; i < smi->process_count; i++) {
        const struct smi_process *process = &smi->processes[i];
        if (!is_on(process, gpu))
            continue;
        if (users.first == NULL)
            users.first = process;
        else if (users.second == NULL)
            users.second = process;
        users.count++;
        users.large += is_share(process->used, gpu->total, 5);
    }
    return users;
}

/* Some lists tell the user alone. */
static int describe_user(const struct smi_process *user, const char *before, char *out, size_t room)
{
    if (user->pid == 0)
        return snprintf(out, room, "%s%s holds %s", before, user->name,
                        size_words_of(user->used.bytes).text);
    return snprintf(out, room, "%spid %llu (%s) holds %s", before, (unsigned long long)user->pid,
                    user->name, size_words_of(user->used.bytes).text);
}

static void describe_users(const struct users *users, char *out, size_t room)
{
    const struct smi_process *list[] = {users->first, users->second};
    size_t length = 0;
    for (int i = 0; i < 2 && list[i] != NULL && length < room; i++)
        length += (size_t)describe_user(list[i], i == 0 ? "" : ", ", out + length, room - length);
}

/* Why no process can be named. */
static const char *nobody(const struct smi *smi, const struct users *users)
{
    if (users->count > 0)
        return ", by processes whose size the driver does not tell here (WSL, Windows)";
    if (!smi->in_processes && !smi->nothing_listed)
        return "; the processes that hold it are not in this list";
    return " and the page names no process with its memory: in a container, or for another user, "
           "the list is empty";
}

static void judge_page(struct verdict *verdict, const struct smi *smi, const struct smi_gpu *gpu)
{
    struct users users = users_of(smi, gpu);
    struct amount listed = smi->listed[gpu - smi->gpus];
    struct amount rest = amount_rest(gpu->used, listed);
    bool tight = is_share(gpu->used, gpu->total, 90);
    char name[64], holders[240] = "";
    describe_users(&users, holders, sizeof(holders));
    name_device(gpu, name, sizeof(name));
    message_fill(&verdict->subject, NUMBER_LISTED, listed);
    if (users.count == 0 || !listed.known)
        verdict_decide(verdict, "unknown", "%s has %s of %s used%s", name,
                       size_of(verdict, NUMBER_USED).text, size_of(verdict, NUMBER_TOTAL).text,
                       nobody(smi, &users));
    else
        verdict_decide(verdict,
                       tight && users.large > 1                   ? "other_process"
                       : tight && is_share(listed, gpu->used, 90) ? "full"
                                                                  : "unknown",
                       "%s has %s of %s used by %zu process%s: %s%s%s%s", name,
                       size_of(verdict, NUMBER_USED).text, size_of(verdict, NUMBER_TOTAL).text,
                       users.count, users.count == 1 ? "" : "es", holders,
                       is_share(rest, gpu->total, 5) ? ", and " : "",
                       is_share(rest, gpu->total, 5) ? size_words_of(rest.bytes).text : "",
                       is_share(rest, gpu->total, 5) ? " belong to none of them" : "");
}

/* A list of processes, and no device's size with it. */
static void judge_processes(struct verdict *verdict, const struct smi *smi)
{
    struct users users = {.first = &smi->processes[0],
                          .second = smi->process_count > 1 ? &smi->processes[1] : NULL};
    char holders[240];
    message_fill(&verdict->subject, NUMBER_LISTED, smi->all_listed);
    describe_users(&users, holders, sizeof(holders));
    if (smi->all_listed.known)
        verdict_decide(verdict, "unknown", "%zu process%s hold%s %s together: %s; %s",
                       smi->process_count, smi->process_count == 1 ? "" : "es",
                       smi->process_count == 1 ? "s" : "", size_of(verdict, NUMBER_LISTED).text,
                       holders,
                       smi->not_supported ? "the device has no memory of its own but shares the "
                                            "host's, so free -m shows what is left"
                                          : "the device's size is not in the list");
    else
        verdict_decide(
            verdict, "unknown",
            "%zu process%s listed without a size: the driver does not tell it here (WSL, "
            "Windows, MIG)",
            smi->process_count, smi->process_count == 1 ? " is" : "es are");
}

void verdict_smi(const struct paste *paste, struct verdict *verdict)
{
    if (paste->smi.gpu_count == 0) {
        judge_processes(verdict, &paste->smi);
        return;
    }
    const struct smi_gpu *gpu = smi_device(&paste->smi, -1);
    if (gpu == NULL)
        gpu = &paste->smi.gpus[0];
    verdict->subject.device = gpu->index;
    /* The numbers are those of this device, whatever was filled in before. */
    verdict->subject.numbers[NUMBER_TOTAL] = gpu->total;
    verdict->subject.numbers[NUMBER_USED] = gpu->used;
    verdict->subject.numbers[NUMBER_FREE] = amount_rest(gpu->total, gpu->used);
    verdict->subject.numbers[NUMBER_OUTSIDE_ANY] = (struct amount){0};
    judge_page(verdict, &paste->smi, gpu);
}

void verdict_with_page(const struct paste *paste, struct verdict *verdict)
{
    char page[VERDICT_WHY];
    verdict_smi(paste, verdict);
    snprintf(page, sizeof(page), "%s", verdict->why);
    verdict_decide(verdict, verdict->class,
                   "%s failed for want of memory and says no figure; by the nvidia-smi page beside "
                   "it %s",
                   verdict->subject.what, page);
}
