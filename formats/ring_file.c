/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a left-over ring: see ring_file.h; the protocol of the cells is ring.h. */
#include "ring_file.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define EVENT_CELLS 2U
#define RING_SHIFT_MAX 26U /* 4 GiB of cells */
#define BODY_MAX (VS_CELL_FIRST_BODY + (VS_RECORD_MAX_CELLS - 1) * VS_CELL_NEXT_BODY)

#define HEADER_U32(bytes, field) vs_get_u32((bytes) + offsetof(struct vs_ring_header, field))
#define HEADER_U64(bytes, field) vs_get_u64((bytes) + offsetof(struct vs_ring_header, field))

static void copy_losses(struct vs_ring_file *ring, const uint8_t *header)
{
    const uint8_t *at = header + offsetof(struct vs_ring_header, loss);
    for (size_t cause = 0; cause < VS_LOSS_CAUSES; cause++)
        for (size_t device = 0; device < VS_RING_DEVICES; device++)
            for (size_t kind = 0; kind < VS_RING_LOSS_KINDS; kind++, at += 16)
                ring->loss[cause][device][kind] =
                    (struct vs_ring_loss){vs_get_u64(at), vs_get_u64(at + 8)};
}

static int copy_header(struct vs_ring_file *ring)
{
    int error;
    const uint8_t *header = vs_source_at(&ring->source, 0, VS_RING_HEADER_BYTES, &error);
    if (header == NULL)
        return error == -ENODATA ? -EINVAL : error;
    if (HEADER_U64(header, magic) != VS_RING_MAGIC ||
        HEADER_U32(header, version) != VS_RING_VERSION ||
        HEADER_U32(header, header_bytes) != VS_RING_HEADER_BYTES)
        return -EINVAL;
    ring->cell_count = HEADER_U64(header, cell_count);
    ring->cell_shift = HEADER_U32(header, cell_shift);
    if (ring->cell_shift == 0 || ring->cell_shift > RING_SHIFT_MAX ||
        ring->cell_count != 1ULL << ring->cell_shift ||
        ring->cell_count > (ring->source.bytes - VS_RING_HEADER_BYTES) / VS_CELL_BYTES)
        return -EINVAL;
    ring->pid = HEADER_U32(header, pid);
    ring->start_monotonic_ns = HEADER_U64(header, start_monotonic_ns);
    ring->head = HEADER_U64(header, head);
    ring->tail = HEADER_U64(header, tail);
    ring->drained = HEADER_U64(header, drained);
    ring->end_kind = HEADER_U32(header, end_kind);
    ring->end_value = (int32_t)HEADER_U32(header, end_value);
    ring->end_ns = HEADER_U64(header, end_ns);
    copy_losses(ring, header);
    return ring->head < ring->cell_count || ring->head > UINT64_MAX / 2 ? -EINVAL : 0;
}

int vs_ring_file_open(const char *path, struct vs_ring_file *ring)
{
    memset(ring, 0, sizeof *ring);
    int error = vs_source_open(path, &ring->source);
    if (error != 0)
        return error;
    error = copy_header(ring);
    if (error != 0)
        vs_source_close(&ring->source);
    return error;
}

void vs_ring_file_close(struct vs_ring_file *ring)
{
    vs_source_close(&ring->source);
    free(ring->events);
    ring->events = NULL;
    ring->count = ring->capacity = 0;
}

/* ---- cells ------------------------------------------------------------------------ */

static const uint8_t *cell_at(struct vs_ring_file *ring, uint64_t position)
{
    int error;
    uint64_t index = position & (ring->cell_count - 1);
    return vs_source_at(&ring->source, VS_RING_HEADER_BYTES + index * VS_CELL_BYTES, VS_CELL_BYTES,
                        &error);
}

static bool stamped(struct vs_ring_file *ring, uint64_t position, uint64_t stamp)
{
    const uint8_t *cell = cell_at(ring, position);
    return cell != NULL && vs_get_u64(cell) == stamp;
}

/* The claim word at `position`; 0 when it is none of this lap or reaches beyond the head. */
static uint64_t valid_claim(struct vs_ring_file *ring, uint64_t position)
{
    const uint8_t *cell = cell_at(ring, position);
    uint64_t claim = cell == NULL ? 0 : vs_get_u64(cell + offsetof(struct vs_cell_first, claim));
    uint32_t cells = VS_CLAIM_CELLS(claim);
    if (VS_CLAIM_LAP(claim) != (uint32_t)(position >> ring->cell_shift) || cells < EVENT_CELLS ||
        cells > VS_RECORD_MAX_CELLS || cells > ring->head - position)
        return 0;
    return claim;
}

/* The body of a committed record of `cells` cells; false when one of them is not its own. */
static bool copy_body(struct vs_ring_file *ring, uint64_t position, uint32_t cells, uint8_t *out)
{
    for (uint32_t i = 0; i < cells; i++) {
        const uint8_t *cell = cell_at(ring, position + i);
        if (cell == NULL || vs_get_u64(cell) != position + i + 1)
            return false;
        size_t skip =
            i == 0 ? VS_CELL_BYTES - VS_CELL_FIRST_BODY : VS_CELL_BYTES - VS_CELL_NEXT_BODY;
        memcpy(out, cell + skip, VS_CELL_BYTES - skip);
        out += VS_CELL_BYTES - skip;
    }
    return true;
}

static int append(struct vs_ring_file *ring, const struct vs_sequenced_event *event)
{
    if (ring->count == ring->capacity) {
        size_t capacity = ring->capacity ? ring->capacity * 2 : 1024;
        struct vs_sequenced_event *grown = realloc(ring->events, capacity * sizeof *grown);
        if (grown == NULL)
            return -ENOMEM;
        ring->events = grown;
        ring->capacity = capacity;
    }
    ring->events[ring->count++] = *event;
    if (event->event.time_ns > ring->last_time_ns)
        ring->last_time_ns = event->event.time_ns;
    return 0;
}

static struct vs_sequenced_event made_here(const struct vs_ring_file *ring, uint64_t sequence,
                                           enum vs_kind kind)
{
    return (struct vs_sequenced_event){.sequence = sequence,
                                       .event = {.time_ns = ring->last_time_ns,
                                                 .free_bytes = VS_FREE_UNKNOWN,
                                                 .kind = (uint8_t)kind,
                                                 .device = VS_DEVICE_UNKNOWN}};
}

static int append_torn(struct vs_ring_file *ring, uint64_t position, uint64_t cells,
                       uint32_t thread)
{
    struct vs_sequenced_event torn = made_here(ring, position, VS_KIND_TORN);
    torn.cells = (uint32_t)cells;
    torn.thread = thread;
    torn.event.extra[0] = cells;
    return append(ring, &torn);
}

/* ---- definitions -------------------------------------------------------------------- */

static int take_module(struct vs_definitions *set, const struct vs_record_head *head,
                       const uint8_t *payload)
{
    struct vs_record_module module;
    if (head->bytes < sizeof module)
        return -EBADMSG;
    memcpy(&module, payload, sizeof module);
    if (module.build_id_bytes > sizeof module.build_id)
        return -EBADMSG;
    struct vs_table_row row = {
        .numbers = {head->id, head->aux, module.start, module.end, module.load_bias},
        .texts = {{(const char *)module.build_id, module.build_id_bytes},
                  {(const char *)payload + sizeof module, head->bytes - sizeof module}}};
    return vs_definitions_take(set, VS_CHUNK_MODULES, &row);
}

static int take_device(struct vs_definitions *set, const struct vs_record_head *head,
                       const uint8_t *payload)
{
    struct vs_record_device device;
    if (head->bytes < sizeof device)
        return -EBADMSG;
    memcpy(&device, payload, sizeof device);
    struct vs_table_row row = {
        .numbers = {head->id, device.total_bytes, device.integrated},
        .texts = {{(const char *)device.uuid, sizeof device.uuid},
                  {(const char *)device.mig_uuid, sizeof device.mig_uuid},
                  {device.pci_id, strnlen(device.pci_id, sizeof device.pci_id)},
                  {device.name, strnlen(device.name, sizeof device.name)}}};
    return vs_definitions_take(set, VS_CHUNK_DEVICES, &row);
}

static int take_stack(struct vs_definitions *set, const struct vs_record_head *head,
                      const uint8_t *payload)
{
    uint64_t frames[BODY_MAX / sizeof(uint64_t)];
    struct vs_record_stack stack;
    if (head->bytes < sizeof stack || head->aux > (head->bytes - sizeof stack) / sizeof frames[0])
        return -EBADMSG;
    memcpy(&stack, payload, sizeof stack);
    memcpy(frames, payload + sizeof stack, head->aux * sizeof frames[0]);
    struct vs_table_row row = {
        .numbers = {head->id, stack.generation}, .words = frames, .word_count = head->aux};
    return vs_definitions_take(set, VS_CHUNK_STACKS, &row);
}

static int take_code(struct vs_definitions *set, const struct vs_record_head *head,
                     const uint8_t *payload)
{
    struct vs_record_code code;
    if (head->bytes < sizeof code)
        return -EBADMSG;
    memcpy(&code, payload, sizeof code);
    const char *texts = (const char *)payload + sizeof code;
    size_t bytes = head->bytes - sizeof code;
    if (code.name_bytes > bytes)
        return -EBADMSG;
    struct vs_table_row row = {
        .numbers = {head->id, code.first_line},
        .texts = {{texts, code.name_bytes}, {texts + code.name_bytes, bytes - code.name_bytes}}};
    return vs_definitions_take(set, VS_CHUNK_CODES, &row);
}

static int take_definition(struct vs_definitions *set, const uint8_t *body, size_t body_bytes)
{
    struct vs_record_head head;
    memcpy(&head, body, sizeof head);
    const uint8_t *payload = body + sizeof head;
    if (head.bytes > body_bytes - sizeof head)
        return -EBADMSG;
    struct vs_table_row text = {.numbers = {head.id},
                                .texts = {{(const char *)payload, head.bytes}}};
    switch (head.type) {
    case VS_RECORD_STRING:
        return vs_definitions_take(set, VS_CHUNK_STRINGS, &text);
    case VS_RECORD_THREAD:
        return vs_definitions_take(set, VS_CHUNK_THREADS, &text);
    case VS_RECORD_MODULE:
        return take_module(set, &head, payload);
    case VS_RECORD_DEVICE:
        return take_device(set, &head, payload);
    case VS_RECORD_STACK:
        return take_stack(set, &head, payload);
    case VS_RECORD_CODE:
        return take_code(set, &head, payload);
    default:
        return 0;
    }
}

/* ---- records -------------------------------------------------------------------------- */

static int take_record(struct vs_ring_file *ring, uint64_t position, uint32_t cells,
                       uint32_t thread, const uint8_t *body, struct vs_definitions *set)
{
    if (cells != EVENT_CELLS) {
        size_t bytes = VS_CELL_FIRST_BODY + (cells - 1) * VS_CELL_NEXT_BODY;
        int error = take_definition(set, body, bytes);
        return error == -EBADMSG ? 0 : error; /* a senseless definition costs its names only */
    }
    struct vs_sequenced_event event = {.sequence = position, .thread = thread, .cells = cells};
    memcpy(&event.event, body, sizeof event.event);
    return append(ring, &event);
}

/* Cells of an unclaimed reservation: up to the next one that carries a stamp of this lap. */
static uint64_t unclaimed_cells(struct vs_ring_file *ring, uint64_t position)
{
    uint64_t at = position + 1;
    while (at < ring->head && !stamped(ring, at, at + 1) &&
           !stamped(ring, at, VS_STAMP_CLAIMED | (at + 1)))
        at++;
    return at - position;
}

/* One record, whole or not; *cells says how far to go on. */
static int take_position(struct vs_ring_file *ring, uint64_t position, struct vs_definitions *set,
                         uint64_t *cells)
{
    uint8_t body[BODY_MAX];
    uint64_t claim = valid_claim(ring, position);
    uint32_t claimed = VS_CLAIM_CELLS(claim);
    if (claim != 0 && stamped(ring, position, position + 1)) {
        *cells = claimed;
        if (copy_body(ring, position, claimed, body))
            return take_record(ring, position, claimed, VS_CLAIM_THREAD(claim), body, set);
    }
    bool unfinished = claim != 0 && stamped(ring, position, VS_STAMP_CLAIMED | (position + 1));
    *cells = unfinished ? claimed : unclaimed_cells(ring, position);
    return append_torn(ring, position, *cells, unfinished ? VS_CLAIM_THREAD(claim) : 0);
}

/* The first position to read: `from` if its cell cannot have been overwritten, else a later start
 * of a record. */
static uint64_t start_position(const struct vs_ring_file *ring, uint64_t from)
{
    uint64_t oldest = ring->head - ring->cell_count;
    uint64_t candidates[] = {from, ring->drained, ring->tail};
    for (size_t i = 0; i < sizeof candidates / sizeof candidates[0]; i++)
        if (candidates[i] >= oldest && candidates[i] >= from && candidates[i] > 0)
            return candidates[i] < ring->head ? candidates[i] : ring->head;
    return ring->head;
}

/* A program that still runs may have overtaken us: what it may have overwritten does not count. */
static int drop_overwritten(struct vs_ring_file *ring)
{
    int error;
    ring->source.window_bytes = 0;
    const uint8_t *header = vs_source_at(&ring->source, 0, VS_RING_HEADER_BYTES, &error);
    if (header == NULL)
        return error;
    uint64_t oldest = HEADER_U64(header, head) - ring->cell_count;
    size_t gone = 0;
    while (gone < ring->count && ring->events[gone].sequence < oldest)
        gone++;
    if (gone > 0) {
        ring->skipped_cells += oldest - ring->events[0].sequence;
        memmove(ring->events, ring->events + gone, (ring->count - gone) * sizeof *ring->events);
        ring->count -= gone;
    }
    return 0;
}

int vs_ring_file_read(struct vs_ring_file *ring, uint64_t from, struct vs_definitions *set)
{
    uint64_t position = start_position(ring, from);
    ring->skipped_cells = from > 0 && position > from ? position - from : 0;
    while (position < ring->head) {
        uint64_t cells = 1;
        int error = take_position(ring, position, set, &cells);
        if (error != 0)
            return error;
        position += cells;
    }
    return drop_overwritten(ring);
}

/* ---- counters ------------------------------------------------------------------------- */

bool vs_ring_file_has_counters(const struct vs_ring_file *ring)
{
    const uint8_t *bytes = (const uint8_t *)ring->loss;
    for (size_t i = 0; i < sizeof ring->loss; i++)
        if (bytes[i] != 0)
            return true;
    return ring->end_kind != VS_END_UNKNOWN;
}

static uint64_t less(uint64_t value, uint64_t told)
{
    return value > told ? value - told : 0;
}

void vs_ring_file_told(struct vs_ring_file *ring, const struct vs_event *event)
{
    if (event->kind == VS_KIND_PROCESS_END)
        ring->end_kind = VS_END_UNKNOWN;
    if (event->kind != VS_KIND_LOSS || event->handle >= VS_LOSS_CAUSES ||
        event->label >= VS_RING_LOSS_KINDS)
        return;
    bool known = event->device >= 0 && (unsigned)event->device + 1 < VS_RING_DEVICES;
    size_t device = known ? (size_t)event->device : VS_RING_DEVICES - 1;
    struct vs_ring_loss *loss = &ring->loss[event->handle][device][event->label];
    loss->events = less(loss->events, event->extra[0]);
    loss->bytes = less(loss->bytes, event->size);
}

static int append_loss(struct vs_ring_file *ring, size_t cause, size_t device, size_t kind)
{
    const struct vs_ring_loss *loss = &ring->loss[cause][device][kind];
    if (loss->events == 0 && loss->bytes == 0)
        return 0;
    struct vs_sequenced_event event = made_here(ring, ring->head, VS_KIND_LOSS);
    event.event.handle = cause;
    event.event.size = loss->bytes;
    event.event.extra[0] = loss->events;
    event.event.label = (uint16_t)kind;
    if (device + 1 < VS_RING_DEVICES)
        event.event.device = (int8_t)device;
    return append(ring, &event);
}

int vs_ring_file_rest(struct vs_ring_file *ring)
{
    int error = 0;
    for (size_t i = 0; i < ring->count; i++)
        vs_ring_file_told(ring, &ring->events[i].event);
    for (size_t cause = 0; cause < VS_LOSS_CAUSES; cause++)
        for (size_t device = 0; device < VS_RING_DEVICES; device++)
            for (size_t kind = 0; kind < VS_RING_LOSS_KINDS && error == 0; kind++)
                error = append_loss(ring, cause, device, kind);
    if (error != 0 || ring->end_kind == VS_END_UNKNOWN)
        return error;
    struct vs_sequenced_event end = made_here(ring, ring->head, VS_KIND_PROCESS_END);
    end.event.handle = ring->end_kind;
    end.event.size = (uint64_t)(int64_t)ring->end_value;
    if (ring->end_ns != 0)
        end.event.time_ns = ring->end_ns;
    return append(ring, &end);
}
