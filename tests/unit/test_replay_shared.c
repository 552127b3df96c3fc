/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that crosses processes: what is exported and not freed, opened and not closed. */
#include <criterion/criterion.h>

#include "replay/shared.h"
#include "replay_lab.h"

static uint64_t ipc(struct lab *lab, uint8_t kind, uint64_t address, uint64_t handle)
{
    bool intent = kind == VS_KIND_IPC_CLOSE;
    return lab_put(lab, (struct vs_event){.kind = kind,
                                          .address = address,
                                          .context = 0x77,
                                          .extra = {handle},
                                          .flags = intent ? VS_EVENT_INTENT : 0});
}

static struct vs_shared shared_now(struct lab *lab, struct vs_objects *objects)
{
    struct vs_shared shared;
    cr_assert_eq(vs_shared_take(lab->state, objects, &shared), 0);
    return shared;
}

Test(shared, exported_until_it_is_freed)
{
    struct lab lab = lab_open();
    struct vs_objects objects = {0};
    vs_objects_start(&objects, lab.state);
    lab_alloc(&lab, PROGRAM, 0x10000000, 4 * MIB);
    lab_alloc(&lab, PROGRAM, 0x20000000, 8 * MIB);
    ipc(&lab, VS_KIND_IPC_GET, 0x10000000, 0xa);
    ipc(&lab, VS_KIND_IPC_GET, 0x20000000, 0xb);
    ipc(&lab, VS_KIND_IPC_GET, 0x10000000, 0xa); /* again: the same memory */
    struct vs_shared shared = shared_now(&lab, &objects);
    cr_assert_eq(shared.exported_count, 2);
    cr_assert_eq(shared.exported[0].handle, 0xb, "the largest first");
    cr_assert_eq(shared.exported[0].bytes, 8 * MIB);
    cr_assert_eq(shared.exported[1].handle, 0xa);
    cr_assert_not(shared.exported[0].live_known, "no segment");
    vs_shared_release(&shared);
    lab_free(&lab, 0x20000000);
    shared = shared_now(&lab, &objects);
    cr_assert_eq(shared.exported_count, 1);
    cr_assert_eq(shared.exported[0].handle, 0xa);
    vs_shared_release(&shared);
    vs_objects_release(&objects);
    lab_close(&lab);
}

Test(shared, opened_until_it_was_closed_as_often)
{
    struct lab lab = lab_open();
    struct vs_objects objects = {0};
    vs_objects_start(&objects, lab.state);
    ipc(&lab, VS_KIND_IPC_OPEN, 0x30000000, 0xc);
    ipc(&lab, VS_KIND_IPC_OPEN, 0x30000000, 0xc);
    struct vs_shared shared = shared_now(&lab, &objects);
    cr_assert_eq(shared.opened_count, 1);
    cr_assert_eq(shared.opened[0].opens, 2);
    cr_assert_eq(shared.opened[0].bytes, 0, "its owner counts it");
    vs_shared_release(&shared);
    ipc(&lab, VS_KIND_IPC_CLOSE, 0x30000000, 0);
    shared = shared_now(&lab, &objects);
    cr_assert_eq(shared.opened_count, 1);
    cr_assert_eq(shared.opened[0].opens, 1);
    vs_shared_release(&shared);
    uint64_t last = ipc(&lab, VS_KIND_IPC_CLOSE, 0x30000000, 0);
    shared = shared_now(&lab, &objects);
    cr_assert_eq(shared.opened_count, 0);
    vs_shared_release(&shared);
    lab_undo(&lab, last, 400);
    shared = shared_now(&lab, &objects);
    cr_assert_eq(shared.opened_count, 1, "the close failed");
    cr_assert_eq(shared.opened[0].handle, 0xc);
    vs_shared_release(&shared);
    vs_objects_release(&objects);
    lab_close(&lab);
}

Test(shared, what_is_opened_ends_with_its_context)
{
    struct lab lab = lab_open();
    struct vs_objects objects = {0};
    vs_objects_start(&objects, lab.state);
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_CONTEXT_CREATE, .context = 0x77});
    ipc(&lab, VS_KIND_IPC_OPEN, 0x30000000, 0xc);
    lab_put(&lab, (struct vs_event){
                      .kind = VS_KIND_CONTEXT_DESTROY, .context = 0x77, .flags = VS_EVENT_INTENT});
    struct vs_shared shared = shared_now(&lab, &objects);
    cr_assert_eq(shared.opened_count, 0);
    vs_shared_release(&shared);
    vs_objects_release(&objects);
    lab_close(&lab);
}

/* PyTorch's way: the handle is of a segment, of which one block may be all that is in use. */
Test(shared, live_blocks_of_an_exported_segment)
{
    struct lab lab = lab_open();
    struct vs_objects objects = {0};
    vs_objects_start(&objects, lab.state);
    lab_segment(&lab, 0x40000000, 20 * MIB);
    lab_block(&lab, 0x40000000 + 2 * MIB, 3 * MIB);
    ipc(&lab, VS_KIND_IPC_GET, 0x40000000, 0xd);
    struct vs_shared shared = shared_now(&lab, &objects);
    cr_assert_eq(shared.exported_count, 1);
    cr_assert_eq(shared.exported[0].bytes, 20 * MIB);
    cr_assert(shared.exported[0].live_known);
    cr_assert_eq(shared.exported[0].live_bytes, 3 * MIB);
    vs_shared_release(&shared);
    vs_objects_release(&objects);
    lab_close(&lab);
}

static void piece(struct lab *lab, uint8_t kind, uint64_t handle, uint64_t size)
{
    bool intent = kind == VS_KIND_PHYS_RELEASE;
    lab_put(lab, (struct vs_event){.kind = kind,
                                   .handle = handle,
                                   .size = size,
                                   .device = kind == VS_KIND_PHYS_CREATE ? 0 : VS_DEVICE_UNKNOWN,
                                   .extra = {1},
                                   .flags = intent ? VS_EVENT_INTENT : 0});
}

Test(shared, pieces_of_virtual_memory_until_they_are_released)
{
    struct lab lab = lab_open();
    struct vs_objects objects = {0};
    vs_objects_start(&objects, lab.state);
    cr_assert_not(vs_shared_any(lab.state, &objects));
    for (uint64_t i = 1; i <= 3; i++) {
        piece(&lab, VS_KIND_PHYS_CREATE, i, 20 * MIB);
        if (i != 3)
            piece(&lab, VS_KIND_PHYS_EXPORT, i, 0);
    }
    piece(&lab, VS_KIND_PHYS_EXPORT, 1, 0); /* again: the same memory */
    cr_assert(vs_shared_any(lab.state, &objects));
    struct vs_shared shared = shared_now(&lab, &objects);
    cr_assert_eq(shared.exported_count, 1, "of one place");
    cr_assert_eq(shared.exported[0].pieces, 2);
    cr_assert_eq(shared.exported[0].bytes, 40 * MIB);
    cr_assert_eq(shared.exported[0].device, 0);
    cr_assert_eq(shared.opened_count, 0);
    vs_shared_release(&shared);
    piece(&lab, VS_KIND_PHYS_RELEASE, 1, 0);
    shared = shared_now(&lab, &objects);
    cr_assert_eq(shared.exported[0].pieces, 1);
    cr_assert_eq(shared.exported[0].bytes, 20 * MIB);
    vs_shared_release(&shared);
    vs_objects_release(&objects);
    lab_close(&lab);
}

/* An import tells no size: what is mapped of it does. */
Test(shared, imported_pieces)
{
    struct lab lab = lab_open();
    struct vs_objects objects = {0};
    vs_objects_start(&objects, lab.state);
    piece(&lab, VS_KIND_PHYS_IMPORT, 7, 0);
    struct vs_shared shared = shared_now(&lab, &objects);
    cr_assert_eq(shared.opened_count, 1);
    cr_assert_eq(shared.opened[0].pieces, 1);
    cr_assert_eq(shared.opened[0].bytes, 0);
    cr_assert_eq(shared.opened[0].device, VS_DEVICE_UNKNOWN);
    vs_shared_release(&shared);
    lab_put(&lab, (struct vs_event){
                      .kind = VS_KIND_MAP, .address = 0x40000000, .size = 20 * MIB, .handle = 7});
    piece(&lab, VS_KIND_PHYS_RELEASE, 7, 0);
    shared = shared_now(&lab, &objects);
    cr_assert_eq(shared.opened_count, 1, "it is mapped");
    cr_assert_eq(shared.opened[0].bytes, 20 * MIB);
    vs_shared_release(&shared);
    vs_objects_release(&objects);
    lab_close(&lab);
}
