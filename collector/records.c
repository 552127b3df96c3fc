/* SPDX-License-Identifier: Apache-2.0 */
/* Translation of the ring's records into the trace's. */
#include "records.h"

#include <limits.h>
#include <string.h>

#include "privacy.h"

#define EVENT_CELLS 2U
#define CUDA_OUT_OF_MEMORY 2 /* CUDA_ERROR_OUT_OF_MEMORY and cudaErrorMemoryAllocation */
#define CUDA_NOT_READY 600
/* Other threads may still get memory while the error travels up; a program that goes on gets much
 * more. */
#define ALLOCATIONS_OF_AN_ENDING 16U

static bool is_memory_failure(const struct vs_event *event)
{
    char layer = vs_kind_layer(event->kind);
    if (event->kind == VS_KIND_FW_OOM)
        return true;
    return (layer == 'D' || layer == 'H') && event->result != 0 && event->result != CUDA_NOT_READY;
}

static bool is_allocation(const struct vs_event *event)
{
    return event->result == 0 &&
           (event->kind == VS_KIND_ALLOC || event->kind == VS_KIND_POOL_ALLOC ||
            event->kind == VS_KIND_PHYS_CREATE || event->kind == VS_KIND_FW_ALLOC);
}

static void note_event(struct records *records, const struct vs_event *event)
{
    if (is_memory_failure(event)) {
        records->urgent = true;
        if (event->kind == VS_KIND_FW_OOM || event->result == CUDA_OUT_OF_MEMORY) {
            records->out_of_memory_count++;
            records->allocations_since_out_of_memory = 0;
        }
    } else if (is_allocation(event)) {
        records->allocations_since_out_of_memory++;
    } else if (event->kind == VS_KIND_PROCESS_END) {
        records->process_end = true;
    }
}

static void take_event(struct records *records, const struct drain_record *record)
{
    struct vs_sequenced_event event = {
        .sequence = record->sequence, .thread = record->thread, .cells = record->cells};
    memcpy(&event.event, record->body, sizeof event.event);
    event.event.time_ns -= event.event.time_ns % records->resolution_ns;
    note_event(records, &event.event);
    output_event(records->output, &event);
}

static bool take_thread(struct records *records, const struct vs_record_head *head,
                        const uint8_t *payload)
{
    struct vs_thread_def thread = {.thread = head->id};
    size_t bytes = head->bytes < sizeof thread.name - 1 ? head->bytes : sizeof thread.name - 1;
    memcpy(thread.name, payload, bytes);
    output_thread(records->output, &thread);
    return true;
}

static bool take_module(struct records *records, const struct vs_record_head *head,
                        const uint8_t *payload)
{
    struct vs_record_module module;
    char path[DRAIN_BODY_MAX], shown[DRAIN_BODY_MAX + PRIVACY_HASH_BYTES];
    if (head->bytes < sizeof module)
        return false;
    memcpy(&module, payload, sizeof module);
    size_t path_bytes = head->bytes - sizeof module;
    memcpy(path, payload + sizeof module, path_bytes);
    path[path_bytes] = 0;
    if (module.build_id_bytes > sizeof module.build_id)
        return false;
    process_note_runtime(&records->runtimes, path);
    if (records->hide)
        privacy_path(path, shown, sizeof shown);
    struct vs_module_def definition = {.id = head->id,
                                       .generation = head->aux,
                                       .start = module.start,
                                       .end = module.end,
                                       .load_bias = module.load_bias,
                                       .build_id_bytes = module.build_id_bytes,
                                       .path = path};
    memcpy(definition.build_id, module.build_id, sizeof definition.build_id);
    if (records->symbolizer)
        symbolizer_module(records->symbolizer, &definition);
    if (records->hide)
        definition.path = shown;
    output_module(records->output, &definition);
    return true;
}

static bool take_device(struct records *records, const struct vs_record_head *head,
                        const uint8_t *payload)
{
    struct vs_record_device device;
    if (head->bytes < sizeof device || head->id > INT8_MAX)
        return false;
    memcpy(&device, payload, sizeof device);
    struct vs_device_def definition = {.device = (int32_t)head->id,
                                       .total_bytes = device.total_bytes,
                                       .integrated = device.integrated != 0};
    memcpy(definition.uuid, device.uuid, sizeof definition.uuid);
    memcpy(definition.mig_uuid, device.mig_uuid, sizeof definition.mig_uuid);
    memcpy(definition.pci_id, device.pci_id, sizeof definition.pci_id - 1);
    memcpy(definition.name, device.name, sizeof definition.name - 1);
    output_device(records->output, &definition);
    records->integrated = records->integrated || definition.integrated;
    records->driver_version = device.driver_version;
    if (records->device_seen)
        records->device_seen(records->device_context, definition.device, device.uuid);
    return true;
}

static bool take_stack(struct records *records, const struct vs_record_head *head,
                       const uint8_t *payload)
{
    uint64_t frames[DRAIN_BODY_MAX / sizeof(uint64_t)];
    struct vs_record_stack stack;
    uint32_t count = head->aux;
    if (head->bytes < sizeof stack || count > (head->bytes - sizeof stack) / sizeof frames[0])
        return false;
    memcpy(&stack, payload, sizeof stack);
    memcpy(frames, payload + sizeof stack, count * sizeof frames[0]);
    struct vs_stack_def definition = {
        .id = head->id, .generation = stack.generation, .frame_count = count, .frames = frames};
    output_stack(records->output, &definition);
    if (records->symbolizer)
        symbolizer_stack(records->symbolizer, &definition);
    return true;
}

/* Copies the text, cut at a zero if it has one, to `out` of more than `bytes` bytes. */
static const char *text_to(char *out, const uint8_t *text, size_t bytes)
{
    memcpy(out, text, bytes);
    out[bytes] = 0;
    return out;
}

/* A name made up by the interpreter ("<frozen importlib._bootstrap>") says nothing about a user. */
static bool is_file_name(const char *file)
{
    return file[0] != 0 && file[0] != '<';
}

static bool take_code(struct records *records, const struct vs_record_head *head,
                      const uint8_t *payload)
{
    struct vs_record_code code;
    char name[DRAIN_BODY_MAX], file[DRAIN_BODY_MAX], shown[DRAIN_BODY_MAX + PRIVACY_HASH_BYTES];
    if (head->bytes < sizeof code)
        return false;
    memcpy(&code, payload, sizeof code);
    const uint8_t *texts = payload + sizeof code;
    size_t bytes = head->bytes - sizeof code;
    if (code.name_bytes > bytes)
        return false;
    struct vs_code_def definition = {
        .id = head->id,
        .first_line = code.first_line,
        .name = text_to(name, texts, code.name_bytes),
        .file = text_to(file, texts + code.name_bytes, bytes - code.name_bytes)};
    if (records->hide && is_file_name(file)) {
        privacy_path(file, shown, sizeof shown);
        definition.file = shown;
    }
    output_code(records->output, &definition);
    return true;
}

/* False when the record makes no sense to this build. */
static bool take_definition(struct records *records, const struct drain_record *record)
{
    struct vs_record_head head;
    memcpy(&head, record->body, sizeof head);
    const uint8_t *payload = record->body + sizeof head;
    if (head.bytes > record->body_bytes - sizeof head)
        return false;
    switch (head.type) {
    case VS_RECORD_STRING:
        output_string(records->output, head.id, (const char *)payload, head.bytes);
        return true;
    case VS_RECORD_THREAD:
        return take_thread(records, &head, payload);
    case VS_RECORD_MODULE:
        return take_module(records, &head, payload);
    case VS_RECORD_DEVICE:
        return take_device(records, &head, payload);
    case VS_RECORD_STACK:
        return take_stack(records, &head, payload);
    case VS_RECORD_CODE:
        return take_code(records, &head, payload);
    case VS_RECORD_PAD:
        return true;
    default:
        return false;
    }
}

void records_take(struct records *records, const struct drain_record *record)
{
    records->taken++;
    if (record->cells == EVENT_CELLS)
        take_event(records, record);
    else if (!take_definition(records, record))
        records->bad++;
}

void records_torn(struct records *records, const struct drain_record *record, uint64_t now_ns)
{
    struct vs_sequenced_event event = {
        .sequence = record->sequence, .thread = record->thread, .cells = record->cells};
    event.event.time_ns = now_ns - now_ns % records->resolution_ns;
    event.event.kind = VS_KIND_TORN;
    event.event.extra[0] = record->cells;
    event.event.device = VS_DEVICE_UNKNOWN;
    event.event.free_bytes = VS_FREE_UNKNOWN;
    output_event(records->output, &event);
}

bool records_ended_out_of_memory(const struct records *records)
{
    return records->out_of_memory_count > 0 &&
           records->allocations_since_out_of_memory <= ALLOCATIONS_OF_AN_ENDING;
}
