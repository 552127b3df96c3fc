/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the shared state that is only told: records of live allocations, and printing. */
#include "state_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- records ---- */

uint32_t simgpu_state_record(enum simgpu_kind kind, int device, uint64_t address,
                             uint64_t requested_bytes)
{
    uint32_t index = UINT32_MAX;
    simgpu_state_lock();
    struct simgpu_process *process = simgpu_state_own();
    if (process && simgpu_view.free_count)
        index = simgpu_view.free_records[--simgpu_view.free_count];
    else if (process && process->record_end < SIMGPU_MAX_RECORDS)
        index = process->record_end++;
    if (index != UINT32_MAX) {
        simgpu_view.records[index] = (struct simgpu_record){.address = address,
                                                            .requested_bytes = requested_bytes,
                                                            .number = ++simgpu_view.record_number,
                                                            .kind_plus_one = (uint32_t)kind + 1,
                                                            .device = device};
        process->record_count++;
    }
    simgpu_state_unlock();
    return index;
}

void simgpu_state_forget(uint32_t record)
{
    if (record == UINT32_MAX)
        return;
    simgpu_state_lock();
    if (simgpu_view.free_count == simgpu_view.free_room) {
        uint32_t room = simgpu_view.free_room ? simgpu_view.free_room * 2 : 1024;
        uint32_t *grown = realloc(simgpu_view.free_records, room * sizeof *grown);
        if (grown) {
            simgpu_view.free_records = grown;
            simgpu_view.free_room = room;
        }
    }
    struct simgpu_process *process = simgpu_state_own();
    simgpu_view.records[record].kind_plus_one = 0;
    if (process)
        process->record_count--;
    if (simgpu_view.free_count < simgpu_view.free_room)
        simgpu_view.free_records[simgpu_view.free_count++] = record;
    simgpu_state_unlock();
}

/* ---- who uses a device ---- */

static bool process_user(unsigned device, unsigned *index, int32_t *pid, uint64_t *bytes)
{
    for (int slot = 0; slot < SIMGPU_MAX_PROCESSES; slot++) {
        const struct simgpu_process *process = &simgpu_view.header->processes[slot];
        uint64_t used = 0;
        for (unsigned kind = 0; process->generation && kind < SIMGPU_KIND_COUNT; kind++)
            used += process->used_bytes[device][kind];
        if (used && (*index)-- == 0) {
            *pid = process->pid;
            *bytes = used;
            return true;
        }
    }
    return false;
}

/* Of the processes outside those that were given a pid, each once. */
static bool other_user(unsigned device, unsigned *index, int32_t *pid, uint64_t *bytes)
{
    const struct simgpu_config *config = simgpu_config();
    for (unsigned i = 0; i < config->other_count; i++) {
        bool first = config->others[i].pid != 0;
        for (unsigned before = 0; before < i; before++)
            first = first && config->others[before].pid != config->others[i].pid;
        uint64_t used = first ? simgpu_state_other_bytes(device, config->others[i].pid) : 0;
        if (used && (*index)-- == 0) {
            *pid = config->others[i].pid;
            *bytes = used;
            return true;
        }
    }
    return false;
}

bool simgpu_state_user(unsigned device, unsigned index, int32_t *pid, uint64_t *bytes)
{
    simgpu_state_lock();
    simgpu_state_reap();
    bool found = process_user(device, &index, pid, bytes) || other_user(device, &index, pid, bytes);
    simgpu_state_unlock();
    return found;
}

/* ---- printing ---- */

static void print_text(FILE *out, const char *text, bool json)
{
    for (; *text; text++) {
        if (json && (*text == '"' || *text == '\\' || (unsigned char)*text < 0x20))
            fprintf(out, "\\u%04x", (unsigned)(unsigned char)*text);
        else
            fputc(*text, out);
    }
}

static void print_devices(FILE *out, bool json, const uint64_t used[])
{
    uint64_t total = simgpu_config()->memory_bytes;
    for (unsigned device = 0; device < simgpu_config()->device_count; device++) {
        if (json)
            fprintf(out,
                    "%s{\"index\":%u,\"total_bytes\":%" PRIu64 ",\"used_bytes\":%" PRIu64
                    ",\"free_bytes\":%" PRIu64 "}",
                    device ? "," : "", device, total, used[device], total - used[device]);
        else
            fprintf(out, "device %u: %" PRIu64 " of %" PRIu64 " bytes used\n", device, used[device],
                    total);
    }
}

static void print_usage(FILE *out, bool json, const struct simgpu_process *process)
{
    bool first = true;
    for (unsigned device = 0; device < SIMGPU_MAX_DEVICES; device++) {
        for (unsigned kind = 0; kind < SIMGPU_KIND_COUNT; kind++) {
            uint64_t bytes = process->used_bytes[device][kind];
            if (!bytes)
                continue;
            if (json)
                fprintf(out, "%s{\"device\":%u,\"kind\":\"%s\",\"bytes\":%" PRIu64 "}",
                        first ? "" : ",", device, simgpu_kind_name(kind), bytes);
            else
                fprintf(out, "  device %u %-12s %15" PRIu64 "\n", device, simgpu_kind_name(kind),
                        bytes);
            first = false;
        }
    }
}

static void print_records(FILE *out, bool json, const struct simgpu_process *process,
                          const struct simgpu_record *records)
{
    bool first = true;
    for (uint32_t i = 0; records && i < process->record_end; i++) {
        const struct simgpu_record *record = &records[i];
        if (!record->kind_plus_one)
            continue;
        const char *kind = simgpu_kind_name(record->kind_plus_one - 1);
        if (json)
            fprintf(out,
                    "%s{\"address\":%" PRIu64 ",\"requested_bytes\":%" PRIu64
                    ",\"kind\":\"%s\",\"device\":%d,\"number\":%" PRIu64 "}",
                    first ? "" : ",", record->address, record->requested_bytes, kind,
                    record->device, record->number);
        else
            fprintf(out, "  0x%012" PRIx64 " %15" PRIu64 " %s (device %d)\n", record->address,
                    record->requested_bytes, kind, record->device);
        first = false;
    }
}

static void print_calls(FILE *out, bool json, struct simgpu_process *process, simgpu_call_name name)
{
    bool first = true;
    for (unsigned call = 0; call < SIMGPU_MAX_CALLS; call++) {
        uint64_t count = atomic_load_explicit(&process->calls[call], memory_order_relaxed);
        if (!count)
            continue;
        if (json)
            fprintf(out, "%s\"%s\":%" PRIu64, first ? "" : ",", name(call), count);
        else
            fprintf(out, "  %-40s %12" PRIu64 " calls\n", name(call), count);
        first = false;
    }
}

static void print_process(FILE *out, bool json, int slot, simgpu_call_name name)
{
    struct simgpu_process *process = &simgpu_view.header->processes[slot];
    struct simgpu_record *records =
        slot == simgpu_view.slot ? simgpu_view.records : simgpu_state_map_records(slot);
    fprintf(out, json ? "{\"pid\":%d,\"name\":\"" : "process %d ", process->pid);
    print_text(out, process->name, json);
    fputs(json ? "\",\"used\":[" : "\n", out);
    print_usage(out, json, process);
    if (json)
        fputs("],\"allocations\":[", out);
    print_records(out, json, process, records);
    if (json)
        fputs("],\"calls\":{", out);
    print_calls(out, json, process, name);
    if (json)
        fputs("}}", out);
    if (records && records != simgpu_view.records)
        simgpu_state_unmap_records(records);
}

void simgpu_state_print(FILE *out, bool json, simgpu_call_name name)
{
    uint64_t used[SIMGPU_MAX_DEVICES];
    for (unsigned device = 0; device < SIMGPU_MAX_DEVICES; device++)
        used[device] = simgpu_state_used(device);
    if (json)
        fputs("{\"schema\":\"simgpu-books/1\",\"devices\":[", out);
    print_devices(out, json, used);
    if (json)
        fputs("],\"processes\":[", out);
    bool first = true;
    simgpu_state_lock();
    for (int slot = 0; slot < SIMGPU_MAX_PROCESSES; slot++) {
        if (!simgpu_view.header->processes[slot].generation)
            continue;
        if (json && !first)
            fputc(',', out);
        print_process(out, json, slot, name);
        first = false;
    }
    simgpu_state_unlock();
    if (json)
        fputs("]}\n", out);
}
