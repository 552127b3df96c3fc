/* SPDX-License-Identifier: Apache-2.0 */
/* Everything a reader finds in a trace, in the plain lines that reader.py prints as well. */
#include <inttypes.h>
#include <stdio.h>

#include "trace.h"

#define IDS_SHOWN 65536U
#define THREADS_SHOWN (1U << 22) /* thread ids of Linux are below it */

static void dump_events(struct vs_reader *reader)
{
    struct vs_sequenced_event one;
    while (vs_reader_next(reader, &one) == 1) {
        const struct vs_event *event = &one.event;
        const uint64_t wide[] = {one.sequence,    one.cells,         one.thread,
                                 event->time_ns,  event->kind,       event->address,
                                 event->size,     event->stream,     event->context,
                                 event->pool,     event->handle,     event->extra[0],
                                 event->extra[1], event->free_bytes, event->duration_ns};
        printf("event");
        for (size_t i = 0; i < sizeof wide / sizeof wide[0]; i++)
            printf(" %" PRIu64, wide[i]);
        printf(" %d %u %u %u %u %d %u\n", event->result, event->module, event->stack, event->call,
               event->label, event->device, event->flags);
    }
}

static void dump_hex(const uint8_t *data, size_t bytes)
{
    putchar(' ');
    for (size_t i = 0; i < bytes; i++)
        printf("%02x", data[i]);
}

static void dump_module(const struct vs_module_def *module)
{
    printf("module %u %u %" PRIu64 " %" PRIu64 " %" PRIu64, module->id, module->generation,
           module->start, module->end, module->load_bias);
    dump_hex(module->build_id, module->build_id_bytes);
    printf(" %s\n", module->path);
}

static void dump_stack(const struct vs_stack_def *stack)
{
    printf("stack %u %u", stack->id, stack->generation);
    for (uint32_t i = 0; i < stack->frame_count; i++)
        printf(" %" PRIu64, stack->frames[i]);
    putchar('\n');
}

/* Of the addresses that the shapes speak of. */
static void dump_symbols(const struct vs_reader *reader)
{
    for (uint32_t module = 0; module < 2; module++)
        for (uint64_t address = 0; address < IDS_SHOWN; address++) {
            const struct vs_symbol_def *symbol = vs_reader_symbol(reader, module, address);
            if (symbol != NULL && symbol->count == 0)
                printf("symbol %u %" PRIu64 " 0 0  \n", module, address);
            for (uint32_t i = 0; symbol != NULL && i < symbol->count; i++)
                printf("symbol %u %" PRIu64 " %u %u %s %s\n", module, address, i,
                       symbol->frames[i].line, symbol->frames[i].function, symbol->frames[i].file);
        }
}

static void dump_definitions(struct vs_reader *reader)
{
    for (uint32_t id = 0; id < IDS_SHOWN; id++)
        if (vs_reader_string(reader, id) != NULL)
            printf("string %u %s\n", id, vs_reader_string(reader, id));
    for (uint32_t id = 0; id < THREADS_SHOWN; id++)
        if (vs_reader_thread(reader, id) != NULL)
            printf("thread %u %s\n", id, vs_reader_thread(reader, id)->name);
    for (uint32_t id = 0; id < IDS_SHOWN; id++)
        if (vs_reader_module(reader, id) != NULL)
            dump_module(vs_reader_module(reader, id));
    for (uint32_t id = 0; id < IDS_SHOWN; id++)
        if (vs_reader_stack(reader, id) != NULL)
            dump_stack(vs_reader_stack(reader, id));
    for (uint32_t id = 0; id < IDS_SHOWN; id++) {
        const struct vs_code_def *code = vs_reader_code(reader, id);
        if (code != NULL)
            printf("code %u %u %s %s\n", id, code->first_line, code->name, code->file);
    }
    dump_symbols(reader);
}

static void dump_devices_and_facts(struct vs_reader *reader)
{
    static const char *const names[] = {"clock", "end", "hooks", "process"};
    for (size_t i = 0; i < vs_reader_device_count(reader); i++) {
        const struct vs_device_def *device = vs_reader_device(reader, i);
        printf("device %d %" PRIu64 " %d", device->device, device->total_bytes, device->integrated);
        dump_hex(device->uuid, sizeof device->uuid);
        dump_hex(device->mig_uuid, sizeof device->mig_uuid);
        printf(" %s %s\n", device->pci_id, device->name);
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (vs_reader_meta(reader, names[i]) != NULL)
            printf("meta %s %s\n", names[i], vs_reader_meta(reader, names[i]));
}

int main(int count, char **arguments)
{
    struct vs_reader *reader;
    struct vs_error error;
    if (count != 2)
        return 2;
    int result = vs_reader_open(arguments[1], &reader, &error);
    if (result != 0) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    dump_events(reader);
    dump_definitions(reader);
    dump_devices_and_facts(reader);
    const struct vs_trace_status *status = vs_reader_status(reader);
    printf("status %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %d\n", status->events,
           status->sequence_gaps, status->missing_events, status->keyframe_events, status->closed);
    if (status->cut_gaps != 0)
        printf("cut %" PRIu64 " %" PRIu64 "\n", status->cut_events, status->cut_gaps);
    vs_reader_close(reader);
    return 0;
}
