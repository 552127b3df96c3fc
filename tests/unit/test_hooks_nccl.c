/* SPDX-License-Identifier: Apache-2.0 */
/* What is told of NCCL's communicators, and that the calls pass as they came. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>

#include "../../shim/real_table.h"
#include "fakes/fake_nccl.h"
#include "hook_lab.h"

typedef int init_rank(void **, int, struct nccl_unique_id, int);
typedef int split(void *, int, int, void **, void *);

enum { SYSTEM_ERROR = 2, IN_PROGRESS = 7 };
static const struct nccl_unique_id id = {{[0] = 'a', [127] = 'z'}};

static struct fake_nccl *nccl_begin(void)
{
    lab_begin();
    void *library = dlopen(FAKE_NCCL_1, RTLD_NOW | RTLD_LOCAL);
    cr_assert_not_null(library);
    real_refresh();
    struct fake_nccl *fake = lab_raw_symbol(library, "fake_nccl");
    fake->handle = (void *)0xc0;
    return fake;
}

static void *entry(const char *name)
{
    void *found = dlsym(dlopen(FAKE_NCCL_1, RTLD_NOW | RTLD_LOCAL), name);
    cr_assert_not_null(found);
    return found;
}

static int init(void **out)
{
    init_rank *function;
    *(void **)&function = entry("ncclCommInitRank");
    return function(out, 4, id, 3);
}

static int call_plain(const char *name)
{
    int (*function)(void);
    *(void **)&function = entry(name);
    return function();
}

static int destroy(void *communicator)
{
    int (*function)(void *);
    *(void **)&function = entry("ncclCommDestroy");
    return function(communicator);
}

Test(nccl, one_is_told_before_it_is_made_and_after)
{
    struct fake_nccl *fake = nccl_begin();
    void *out = NULL;
    fake->error = 77;
    cr_assert_eq(init(&out), 0);
    cr_expect_eq(errno, 77);
    cr_expect_eq(out, (void *)0xc0);
    cr_expect_eq(fake->first_byte, 'a');
    cr_expect_eq(fake->last_byte, 'z');
    const struct vs_event *before = lab_event(VS_KIND_COMM_BEGIN, 0);
    cr_expect_eq(before->size, 4);
    cr_expect_eq(before->extra[0], 3);
    cr_expect_eq(before->device, 0);
    cr_expect_str_eq(lab_call_name(before->call), "ncclCommInitRank");
    const struct vs_event *after = lab_event(VS_KIND_COMM_CREATE, 0);
    cr_expect_eq(after->handle, 0xc0);
    cr_expect_eq(after->size, 4);
    cr_expect_eq(after->extra[0], 1, "the sequence of the first record");
    cr_expect_eq(after->extra[1], 3);
    cr_expect_eq(after->result, 0);
    cr_expect_eq(fake->asked, 0, "all was known");
}

Test(nccl, a_refusal_keeps_its_number_apart_from_cudas)
{
    struct fake_nccl *fake = nccl_begin();
    void *out = NULL;
    fake->result = SYSTEM_ERROR;
    cr_assert_eq(init(&out), SYSTEM_ERROR);
    cr_expect_eq(lab_event(VS_KIND_COMM_CREATE, 0)->result, VS_NCCL_RESULTS + SYSTEM_ERROR);
    cr_expect_eq(lab_event(VS_KIND_COMM_CREATE, 0)->handle, 0);
}

Test(nccl, in_a_group_the_handle_is_read_at_its_end)
{
    struct fake_nccl *fake = nccl_begin();
    void *out = NULL;
    fake->late = 1;
    cr_assert_eq(call_plain("ncclGroupStart"), 0);
    cr_assert_eq(call_plain("ncclGroupStart"), 0);
    cr_assert_eq(init(&out), 0);
    cr_assert_eq(call_plain("ncclGroupEnd"), 0);
    cr_expect_eq(lab_count(VS_KIND_COMM_CREATE), 0, "an inner group");
    cr_assert_eq(call_plain("ncclGroupEnd"), 0);
    cr_expect_eq(lab_count(VS_KIND_COMM_CREATE), 1);
    cr_expect_eq(lab_event(VS_KIND_COMM_CREATE, 0)->handle, 0xc0);
    cr_expect_eq(lab_event(VS_KIND_COMM_CREATE, 0)->extra[0], 1);
    cr_assert_eq(call_plain("ncclGroupStart"), 0);
    cr_assert_eq(call_plain("ncclGroupEnd"), 0);
    cr_expect_eq(lab_count(VS_KIND_COMM_CREATE), 1, "told once");
}

Test(nccl, a_group_that_fails_made_none)
{
    struct fake_nccl *fake = nccl_begin();
    void *out = NULL;
    fake->late = 1;
    fake->group_result = SYSTEM_ERROR;
    call_plain("ncclGroupStart");
    init(&out);
    cr_assert_eq(call_plain("ncclGroupEnd"), SYSTEM_ERROR);
    cr_expect_eq(lab_event(VS_KIND_COMM_CREATE, 0)->result, VS_NCCL_RESULTS + SYSTEM_ERROR);
}

Test(nccl, more_in_a_group_than_can_be_kept_are_told_without_their_handles)
{
    struct fake_nccl *fake = nccl_begin();
    void *out = NULL;
    fake->late = 1;
    call_plain("ncclGroupStart");
    for (int i = 0; i < 130; i++) {
        init(&out);
    }
    cr_expect_eq(lab_count(VS_KIND_COMM_CREATE), 2);
    cr_expect_eq(lab_event(VS_KIND_COMM_CREATE, 0)->handle, 0);
    call_plain("ncclGroupEnd");
    cr_expect_eq(lab_count(VS_KIND_COMM_CREATE), 130);
}

Test(nccl, one_in_progress_is_not_asked_anything)
{
    struct fake_nccl *fake = nccl_begin();
    void *out = NULL;
    split *function;
    *(void **)&function = entry("ncclCommSplit");
    fake->result = IN_PROGRESS;
    cr_assert_eq(function((void *)0xaa, 1, 0, &out, NULL), IN_PROGRESS);
    cr_expect_eq(lab_event(VS_KIND_COMM_CREATE, 0)->result, 0);
    cr_expect_eq(lab_event(VS_KIND_COMM_CREATE, 0)->size, 0);
    cr_expect_eq(fake->asked, 0);
}

Test(nccl, of_a_split_the_ranks_are_asked_for)
{
    struct fake_nccl *fake = nccl_begin();
    void *out = NULL;
    split *function;
    *(void **)&function = entry("ncclCommSplit");
    cr_assert_eq(function((void *)0xaa, 1, 0, &out, NULL), 0);
    cr_expect_eq(lab_event(VS_KIND_COMM_BEGIN, 0)->handle, 0xaa);
    cr_expect_eq(lab_event(VS_KIND_COMM_CREATE, 0)->size, 6);
    cr_expect_eq(lab_event(VS_KIND_COMM_CREATE, 0)->extra[1], 5);
    cr_expect_eq(fake->asked, 2);
    cr_assert_eq(function((void *)0xaa, -1, 0, &out, NULL), 0);
    cr_expect_eq(lab_count(VS_KIND_COMM_BEGIN), 1, "no part, no communicator");
    cr_expect_eq(fake->calls, 2);
}

Test(nccl, one_for_each_device)
{
    nccl_begin();
    int (*function)(void **, int, const int *);
    int devices[] = {2, 1};
    void *out[2] = {NULL, NULL};
    *(void **)&function = entry("ncclCommInitAll");
    cr_assert_eq(function(out, 2, devices), 0);
    cr_expect_eq(lab_count(VS_KIND_COMM_CREATE), 2);
    cr_expect_eq(lab_event(VS_KIND_COMM_CREATE, 0)->device, 2);
    cr_expect_eq(lab_event(VS_KIND_COMM_CREATE, 1)->handle, 0xc1);
    cr_expect_eq(lab_event(VS_KIND_COMM_CREATE, 1)->extra[1], 1);
}

Test(nccl, an_end_is_told_before_and_taken_back_when_it_fails)
{
    struct fake_nccl *fake = nccl_begin();
    cr_assert_eq(destroy((void *)0xc0), 0);
    cr_expect(lab_event(VS_KIND_COMM_DESTROY, 0)->flags & VS_EVENT_INTENT);
    fake->result = IN_PROGRESS;
    destroy((void *)0xc0);
    cr_expect_eq(lab_count(VS_KIND_UNDO), 0);
    fake->result = SYSTEM_ERROR;
    cr_assert_eq(destroy((void *)0xc0), SYSTEM_ERROR);
    cr_expect_eq(lab_event(VS_KIND_UNDO, 0)->handle, 3, "the sequence of the third record");
    cr_expect_eq(lab_event(VS_KIND_UNDO, 0)->result, VS_NCCL_RESULTS + SYSTEM_ERROR);
    unsigned told = lab.count;
    destroy(NULL);
    cr_expect_eq(lab.count, told);
}

Test(nccl, memory_for_the_caller_has_the_calls_name)
{
    nccl_begin();
    void *out = NULL;
    int (*function)(void **, size_t);
    *(void **)&function = entry("ncclMemAlloc");
    cr_assert_eq(function(&out, 4096), 0);
    const struct vs_event *event = lab_event(VS_KIND_ALLOC, 0);
    cr_expect_eq(event->size, 4096);
    cr_expect_str_eq(lab_call_name(event->label), "ncclMemAlloc");
    cr_expect_str_eq(lab_call_name(event->call), "cuMemAlloc_v2");
    cr_expect_eq(shim_thread.depth, 0);
}

Test(nccl, the_functions_of_a_second_library_are_handed_out_as_they_are)
{
    nccl_begin();
    void *second = dlopen(FAKE_NCCL_2, RTLD_NOW | RTLD_LOCAL);
    cr_expect(real_is_ours(entry("ncclCommInitRank")));
    cr_expect_eq(dlsym(second, "ncclCommInitRank"), lab_raw_symbol(second, "ncclCommInitRank"));
}

Test(nccl, without_recording_the_collector_is_asked_for_and_nothing_told)
{
    struct fake_nccl *fake = nccl_begin();
    void *out = NULL;
    lab.recording = false;
    cr_assert_eq(init(&out), 0);
    cr_expect_eq(out, (void *)0xc0);
    cr_expect_eq(fake->calls, 1);
    cr_expect_eq(lab.count, 0);
    cr_expect_gt(lab.starts, 0);
}
