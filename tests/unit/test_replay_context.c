/* SPDX-License-Identifier: Apache-2.0 */
/* What goes with a context, and what comes back when its end failed. */
#include "replay_lab.h"

static struct lab with_context(void)
{
    struct lab lab = lab_open();
    lab_device(&lab)->others_known = true;
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_OTHER_PROCESS, .handle = 9, .size = 50 * MIB});
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_CONTEXT_RETAIN,
                                    .context = 0x77,
                                    .flags = VS_EVENT_FREE_SAMPLED,
                                    .free_bytes = 16 * GIB - 350 * MIB});
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_ALLOC,
                                    .module = NCCL,
                                    .address = 0x10000000,
                                    .size = 3 * MIB,
                                    .context = 0x77,
                                    .flags = VS_EVENT_FREE_SAMPLED,
                                    .free_bytes = 16 * GIB - 353 * MIB});
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_POOL_ALLOC,
                                    .module = PROGRAM,
                                    .address = 0x20000000,
                                    .size = MIB,
                                    .context = 0x77,
                                    .pool = 0x99,
                                    .extra = {32 * MIB, MIB}});
    return lab;
}

static uint64_t end_of(struct lab *lab, uint8_t kind, uint64_t context)
{
    return lab_put(lab,
                   (struct vs_event){.kind = kind, .context = context, .flags = VS_EVENT_INTENT});
}

static void check_gone(const struct lab *lab)
{
    struct vs_bands bands = lab_bands(lab);
    cr_assert_eq(bands.device, (int64_t)(50 * MIB), "only the other process is left: %lld",
                 (long long)bands.device);
    cr_assert_eq(bands.direct, 0);
    cr_assert_eq(bands.implicit[VS_IMPLICIT_CONTEXT], 0);
    cr_assert_eq(bands.unexplained, 0);
    lab_check_identities(lab);
}

Test(context, a_reset_takes_the_processs_share_away)
{
    struct lab lab = with_context();
    end_of(&lab, VS_KIND_CONTEXT_RESET, 0);
    check_gone(&lab);
    lab_close(&lab);
}

Test(context, the_last_release_does_too)
{
    struct lab lab = with_context();
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_CONTEXT_RETAIN, .context = 0x77});
    end_of(&lab, VS_KIND_CONTEXT_RELEASE, 0);
    cr_assert_eq(lab_bands(&lab).device, (int64_t)(385 * MIB), "one retain is left");
    end_of(&lab, VS_KIND_CONTEXT_RELEASE, 0);
    check_gone(&lab);
    lab_close(&lab);
}

Test(context, one_destroyed_beside_another)
{
    struct lab lab = lab_open();
    lab_device(&lab)->others_known = true;
    for (uint64_t context = 1; context <= 2; context++)
        lab_put(&lab, (struct vs_event){.kind = VS_KIND_CONTEXT_CREATE,
                                        .context = context,
                                        .flags = VS_EVENT_FREE_SAMPLED,
                                        .free_bytes = 16 * GIB - context * 300 * MIB});
    end_of(&lab, VS_KIND_CONTEXT_DESTROY, 1);
    struct vs_bands bands = lab_bands(&lab);
    cr_assert_eq(bands.device, (int64_t)(300 * MIB));
    cr_assert_eq(bands.implicit[VS_IMPLICIT_CONTEXT], (int64_t)(300 * MIB));
    end_of(&lab, VS_KIND_CONTEXT_DESTROY, 2);
    cr_assert_eq(lab_bands(&lab).device, 0);
    lab_check_identities(&lab);
    lab_close(&lab);
}

Test(context, a_measurement_after_it_corrects)
{
    struct lab lab = with_context();
    end_of(&lab, VS_KIND_CONTEXT_RESET, 0);
    lab_sample(&lab, 16 * GIB - 360 * MIB);
    struct vs_bands bands = lab_bands(&lab);
    cr_assert_eq(bands.implicit[VS_IMPLICIT_CONTEXT], (int64_t)(310 * MIB), "it came back");
    cr_assert_eq(bands.unexplained, 0);
    lab_close(&lab);
}

/* Whatever ends it: when the call fails, all is as it was. */
Test(context, an_end_that_fails_is_taken_back)
{
    static const struct {
        uint8_t kind;
        uint64_t context;
    } ends[] = {
        {VS_KIND_CONTEXT_RESET, 0}, {VS_KIND_CONTEXT_RELEASE, 0}, {VS_KIND_CONTEXT_DESTROY, 0x77}};
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        struct lab lab = with_context();
        struct vs_objects objects = {0};
        vs_objects_start(&objects, lab.state);
        struct vs_bands before = lab_bands(&lab);
        int64_t live = lab_device(&lab)->layers[VS_LAYER_DRIVER].live_bytes;
        lab_undo(&lab, end_of(&lab, ends[i].kind, ends[i].context), 201);
        struct vs_bands after = lab_bands(&lab);
        cr_assert_eq(memcmp(&before, &after, sizeof(before)), 0, "kind %d", ends[i].kind);
        cr_assert_eq(lab_device(&lab)->layers[VS_LAYER_DRIVER].live_bytes, live);
        cr_assert_eq(lab_device(&lab)->primary_retains, 1);
        cr_assert_eq(lab_device(&lab)->contexts.count, 1);
        lab_sample(&lab, 16 * GIB - 385 * MIB);
        cr_assert_eq(lab_bands(&lab).unexplained, 0);
        lab_free(&lab, 0x10000000);
        cr_assert_eq(lab.state->counts.frees_unknown, 0);
        vs_objects_release(&objects);
        lab_close(&lab);
    }
}

Test(context, a_release_that_fails_leaves_the_object)
{
    struct lab lab = lab_open();
    struct vs_objects objects = {0};
    vs_objects_start(&objects, lab.state);
    lab_put(&lab, (struct vs_event){.kind = VS_KIND_CONTEXT_RETAIN, .context = 0x77});
    lab_undo(&lab, end_of(&lab, VS_KIND_CONTEXT_RELEASE, 0), 201);
    cr_assert_eq(objects.kinds[VS_OBJECT_CONTEXT].live.count, 1);
    cr_assert_eq(objects.kinds[VS_OBJECT_CONTEXT].destroyed, 0);
    end_of(&lab, VS_KIND_CONTEXT_RESET, 0);
    cr_assert_eq(objects.kinds[VS_OBJECT_CONTEXT].live.count, 0);
    vs_objects_release(&objects);
    lab_close(&lab);
}

/* Measured by another thread between the announcement and the failure. */
Test(context, a_measurement_in_between)
{
    struct lab lab = with_context();
    uint64_t reset = end_of(&lab, VS_KIND_CONTEXT_RESET, 0);
    lab.thread++;
    lab_sample(&lab, 16 * GIB - 385 * MIB);
    lab.thread--;
    lab_undo(&lab, reset, 201);
    struct vs_bands bands = lab_bands(&lab);
    cr_assert_eq(bands.device, (int64_t)(385 * MIB));
    cr_assert_eq(bands.implicit[VS_IMPLICIT_CONTEXT], (int64_t)(300 * MIB));
    cr_assert_eq(bands.unexplained, 0);
    lab_check_identities(&lab);
    lab_close(&lab);
}
