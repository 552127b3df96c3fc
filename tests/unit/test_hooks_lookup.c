/* SPDX-License-Identifier: Apache-2.0 */
/* Which function a look-up hands out and which real one a call reaches. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "../../formats/ring.h"
#include "../../shim/lifecycle.h"
#include "../../shim/real_table.h"
#include "hook_lab.h"

typedef int get_proc_address(const char *, void **, int, uint64_t, int *);
typedef int cuda_malloc(void **, size_t);
typedef int cuda_query(void *);

static void *driver_handle(void)
{
    return dlopen(FAKE_CUDA_PATH, RTLD_NOW | RTLD_LOCAL);
}

static get_proc_address *get_proc(void)
{
    get_proc_address *function;
    *(void **)&function = dlsym(driver_handle(), "cuGetProcAddress_v2");
    cr_assert(real_is_ours(*(void **)&function));
    return function;
}

static void *ask(const char *name, int version, uint64_t flags)
{
    void *found = NULL;
    int status = 0;
    get_proc()(name, &found, version, flags, &status);
    return found;
}

Test(lookup, a_handle_of_the_driver_gives_a_wrapper)
{
    struct fake_cuda *fake = lab_begin();
    int (*alloc)(uint64_t *, size_t);
    *(void **)&alloc = dlsym(driver_handle(), "cuMemAlloc_v2");
    uint64_t address = 0;
    cr_assert_eq(alloc(&address, 10), 0);
    cr_expect_eq(fake->alloc_calls, 1);
    cr_expect_eq(lab_count(VS_KIND_ALLOC), 1);
}

Test(lookup, names_that_are_not_listed_come_as_the_library_has_them)
{
    lab_begin();
    cr_expect_eq(dlsym(driver_handle(), "cuMemNewThing"),
                 lab_raw_symbol(driver_handle(), "cuMemNewThing"));
    cr_expect_null(dlsym(driver_handle(), "cudnnCreate"));
    cr_expect_not_null(strstr(dlerror(), "cudnnCreate"));
    cr_expect_null(dlsym(driver_handle(), "cuMemMap"), "listed, but not in this library");
    cr_expect_not_null(strstr(dlerror(), "cuMemMap"));
}

Test(lookup, default_and_null_handle_see_the_program)
{
    lab_begin();
    void *strlen_found = dlsym(RTLD_DEFAULT, "strlen");
    cr_expect_not_null(strlen_found);
    cr_expect(real_is_ours(dlsym(NULL, "cuMemAlloc_v2")), "the preloaded symbol");
    cr_expect_null(dlsym(RTLD_NEXT, "cuMemAlloc_v2"), "nothing behind the program itself");
}

static void *look_up_often(void *argument)
{
    (void)argument;
    for (int i = 0; i < 2000; i++) {
        if (dlsym(RTLD_NEXT, "strlen") == NULL || dlsym(RTLD_NEXT, "malloc") == NULL ||
            dlsym(driver_handle(), "cuMemFree_v2") == NULL) {
            return (void *)1;
        }
    }
    return NULL;
}

Test(lookup, repeated_next_look_ups_from_eight_threads)
{
    lab_begin();
    pthread_t threads[8];
    for (int i = 0; i < 8; i++) {
        pthread_create(&threads[i], NULL, look_up_often, NULL);
    }
    for (int i = 0; i < 8; i++) {
        void *failed = NULL;
        pthread_join(threads[i], &failed);
        cr_expect_null(failed);
    }
}

Test(lookup, the_variant_follows_name_version_and_flags)
{
    lab_begin();
    void *handle = driver_handle();
    cr_expect(real_is_ours(ask("cuMemAlloc", 3020, 0)));
    cr_expect_eq(ask("cuMemAlloc", 2000, 0), lab_raw_symbol(handle, "cuMemAlloc"), "32 bits");
    cr_expect_eq(ask("cuMemAlloc", 99000, 0), lab_raw_symbol(handle, "cuMemAlloc_v9"), "unknown");
    cr_expect(lifecycle_ring->hook_warnings & HOOK_WARNING_UNKNOWN_VERSION);
    cr_expect(real_is_ours(ask("cuMemFree", 99000, 0)), "newer version, same function");

    int (*plain)(uint64_t *, size_t, void *);
    int (*per_thread)(uint64_t *, size_t, void *);
    *(void **)&plain = ask("cuMemAllocAsync", 12000, 0);
    *(void **)&per_thread = ask("cuMemAllocAsync", 12000, 2);
    uint64_t address = 0;
    plain(&address, 1, NULL);
    cr_expect_eq(address, 0xa000);
    per_thread(&address, 1, NULL);
    cr_expect_eq(address, 0xb000);
    cr_expect_eq(lab_event(VS_KIND_POOL_ALLOC, 0)->stream, 0);
    cr_expect_eq(lab_event(VS_KIND_POOL_ALLOC, 1)->stream, ABI_STREAM_PER_THREAD);
}

Test(lookup, unknown_names_pass_and_are_noted_once)
{
    lab_begin();
    cr_expect_eq(ask("cuMemNewThing", 12000, 0), lab_raw_symbol(driver_handle(), "cuMemNewThing"));
    cr_expect(lifecycle_ring->hook_warnings & HOOK_WARNING_UNKNOWN_NAME);
    cr_expect_null(ask("cuNoSuchThing", 12000, 0));
}

Test(lookup, the_look_up_hands_out_itself)
{
    lab_begin();
    get_proc_address *again;
    void *found = NULL;
    int status = 0;
    *(void **)&again = ask("cuGetProcAddress", 12000, 0);
    cr_assert(real_is_ours(*(void **)&again));
    again("cuMemAlloc", &found, 3020, 0, &status);
    cr_expect(real_is_ours(found));
}

Test(lookup, variants_of_the_table)
{
    cr_expect_eq(hook_find_asked("cuCtxCreate", 3010, false), HOOK_cuCtxCreate);
    cr_expect_eq(hook_find_asked("cuCtxCreate", 3020, false), HOOK_cuCtxCreate_v2);
    cr_expect_eq(hook_find_asked("cuCtxCreate", 12040, false), HOOK_cuCtxCreate_v3);
    cr_expect_eq(hook_find_asked("cuCtxCreate", 13000, true), HOOK_cuCtxCreate_v4);
    cr_expect_eq(hook_find_asked("cuIpcOpenMemHandle", 4010, false), HOOK_cuIpcOpenMemHandle);
    cr_expect_eq(hook_find_asked("cuIpcOpenMemHandle", 11000, false), HOOK_cuIpcOpenMemHandle_v2);
    cr_expect_eq(hook_find_asked("cuGraphInstantiate", 12000, false),
                 HOOK_cuGraphInstantiateWithFlags);
    cr_expect_eq(hook_find_asked("cuGraphLaunch", 12000, true), HOOK_cuGraphLaunch_ptsz);
    cr_expect_eq(hook_find_asked("cuMemFree", 3010, false), HOOK_LEFT_ALONE);
    cr_expect_eq(hook_find_asked("cuLaunchKernel", 12000, false), HOOK_COUNT);
    cr_expect_eq(hook_find("cuMemFree"), HOOK_COUNT, "the symbol of 32-bit addresses");
    cr_expect_eq(hook_find("cudnnCreate"), HOOK_COUNT);
    for (unsigned i = 0; i < hook_rows_by_name_count; i++) {
        unsigned hook = hook_rows_by_name[i];
        cr_expect_eq(hook_find(hook_rows[hook].name), hook);
    }
}

/* ---- runtimes ---------------------------------------------------------------------- */

static void *open_runtime(const char *path)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    cr_assert_not_null(handle, "%s", dlerror());
    return handle;
}

static int connect(void *runtime)
{
    int (*function)(const char *);
    *(void **)&function = dlsym(runtime, "fake_cudart_connect");
    return function(FAKE_CUDA_PATH);
}

Test(lookup, a_runtime_call_is_the_label_of_the_driver_call_beneath)
{
    lab_begin();
    void *runtime = open_runtime(FAKE_CUDART_12);
    cr_assert_eq(connect(runtime), 0);
    cuda_malloc *allocate;
    int (*release)(void *);
    *(void **)&allocate = dlsym(runtime, "cudaMalloc");
    *(void **)&release = dlsym(runtime, "cudaFree");
    void *address = NULL;
    allocate(&address, 333);
    release(address);
    release(NULL);
    cr_assert_eq(lab.count, 2);
    cr_expect_str_eq(lab_call_name(lab_event(VS_KIND_ALLOC, 0)->call), "cuMemAlloc_v2");
    cr_expect_str_eq(lab_call_name(lab_event(VS_KIND_ALLOC, 0)->label), "cudaMalloc");
    cr_expect_eq(lab_event(VS_KIND_ALLOC, 0)->flags, 0);
    cr_expect_str_eq(lab_call_name(lab_event(VS_KIND_FREE, 0)->label), "cudaFree");
    cr_expect_eq(lab_event(VS_KIND_FREE, 0)->address, HOOK_U64(address));
}

Test(lookup, the_first_free_of_all_counts_once_at_whichever_level)
{
    lab_begin();
    void *runtime = open_runtime(FAKE_CUDART_12);
    cr_assert_eq(connect(runtime), 0);
    int (*release)(void *);
    *(void **)&release = dlsym(runtime, "cudaFree");
    release((void *)0x7000);
    release((void *)0x8000);
    cr_expect_eq(lab.count, 2);
    cr_expect_eq(lab_count(VS_KIND_FREE), 2);
}

Test(lookup, without_a_driver_beneath_the_runtime_call_is_the_event)
{
    lab_begin();
    void *runtime = open_runtime(FAKE_CUDART_12);
    cuda_malloc *allocate;
    int (*release)(void *);
    *(void **)&allocate = dlsym(runtime, "cudaMalloc");
    *(void **)&release = dlsym(runtime, "cudaFree");
    void *address = NULL;
    allocate(&address, 333);
    release(address);
    cr_assert_eq(lab.count, 2);
    cr_expect_eq(lab_event(VS_KIND_ALLOC, 0)->flags, VS_EVENT_RUNTIME);
    cr_expect_eq(lab_event(VS_KIND_FREE, 0)->flags, VS_EVENT_RUNTIME | VS_EVENT_INTENT);
}

Test(lookup, two_runtimes_each_by_its_handle)
{
    lab_begin();
    cuda_query *query_12;
    cuda_query *query_13;
    *(void **)&query_12 = dlsym(open_runtime(FAKE_CUDART_12), "cudaEventQuery");
    *(void **)&query_13 = dlsym(open_runtime(FAKE_CUDART_13), "cudaEventQuery");
    cr_expect_neq(query_12, query_13);
    cr_expect_eq(query_12(NULL), 12);
    cr_expect_eq(query_13(NULL), 13);
    cr_expect_eq(query_12(NULL), 12);
}

static int plugin_query(const char *path)
{
    int (*query)(void);
    *(void **)&query = dlsym(open_runtime(path), "plugin_query");
    return query();
}

Test(lookup, two_runtimes_each_by_its_caller)
{
    lab_begin();
    cr_expect_eq(plugin_query(FAKE_PLUGIN_12), 12);
    cr_expect_eq(plugin_query(FAKE_PLUGIN_13), 13, "loaded after the other was known");
    cr_expect_eq(plugin_query(FAKE_PLUGIN_12), 12);
    cr_expect_neq(lab_event(VS_KIND_EVENT_QUERY, 0)->module,
                  lab_event(VS_KIND_EVENT_QUERY, 1)->module);
}

Test(lookup, unloading_and_loading_again)
{
    lab_begin();
    for (int round = 0; round < 20; round++) {
        void *plugin = dlopen(round % 2 ? FAKE_PLUGIN_12 : FAKE_PLUGIN_13, RTLD_NOW | RTLD_LOCAL);
        int (*query)(void);
        *(void **)&query = dlsym(plugin, "plugin_query");
        cr_assert_eq(query(), round % 2 ? 12 : 13);
        cr_assert_eq(dlclose(plugin), 0);
    }
    cr_expect_not(lifecycle_ring->hook_warnings & HOOK_WARNING_SLOTS_FULL);
}
