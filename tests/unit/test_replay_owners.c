/* SPDX-License-Identifier: Apache-2.0 */
/* Whose memory it is: the module that called; behind a bridge from Python to C, the Python code. */
#include <criterion/criterion.h>

#include "replay/state.h"

static const char *string_of(const void *self, uint32_t id)
{
    (void)self;
    return id == 1 ? "cuMemAlloc_v2" : NULL;
}

static const char *module_of(const void *self, uint32_t id)
{
    static const char *const paths[] = {
        NULL,
        "/usr/lib/x86_64-linux-gnu/libffi.so.8.1.2",
        "/usr/lib/python3.12/lib-dynload/_ctypes.cpython-312-x86_64-linux-gnu.so",
        "/v/site-packages/_cffi_backend.cpython-312-x86_64-linux-gnu.so",
        "/v/site-packages/cffi.libs/libffi-0a1b2c3d.so.8",
        "/v/site-packages/cupy_backends/cuda/api/runtime.cpython-312-x86_64-linux-gnu.so",
        "/w/libnccl-1a2b3c4d.so.2",
        "/usr/bin/train",
        "/v/site-packages/cuda/bindings/driver.cpython-312-x86_64-linux-gnu.so"};
    (void)self;
    return id < 9 ? paths[id] : NULL;
}

enum { NUMBA = 0x10, SCRIPT, TYPED, ONE_FILE, LIBRARY_ONLY, MADE_METHOD, NOT_KNOWN, STACKS };

static const char *code_of(const void *self, uint32_t stack, unsigned index, const char **file)
{
    static const struct {
        const char *name, *file;
    } frames[STACKS - NUMBA][4] = {
        [NUMBA -
         NUMBA] = {{"CDLL.__call__", "/usr/lib/python3.12/ctypes/__init__.py"},
                   {"Buffer.allocate", "/v/lib/python3.12/site-packages/cuda/core/buffer.py"},
                   {"Driver.call", "/v/lib/python3.12/site-packages/numba/cuda/driver.py"},
                   {"main", "/home/u/train.py"}},
        [SCRIPT -
            NUMBA] = {{"alloc", "/home/u/train.py"}, {"run", "/v/site-packages/lightning/run.py"}},
        [TYPED - NUMBA] = {{"<module>", "<string>"}},
        [ONE_FILE - NUMBA] = {{"alloc", "/v/dist-packages/pocket.py"}},
        [LIBRARY_ONLY - NUMBA] = {{"run", "/usr/lib/python3.12/threading.py"},
                                  {"load", "<frozen importlib._bootstrap>"}},
        [MADE_METHOD - NUMBA] = {{"Point.__init__", "<string>"}, {"f", "/v/site-packages/a/b.py"}},
        [NOT_KNOWN - NUMBA] = {{"", ""}},
    };
    (void)self;
    if (stack < NUMBA || stack >= STACKS || index > 3 || frames[stack - NUMBA][index].name == NULL)
        return NULL;
    *file = frames[stack - NUMBA][index].file;
    return frames[stack - NUMBA][index].name;
}

static const char *owner(struct vs_state *state, uint32_t module, uint32_t stack)
{
    struct vs_event event = {
        .kind = VS_KIND_ALLOC, .module = module, .stack = stack, .label = 1, .size = 512};
    uint32_t site = vs_state_site_of(state, &event, 0, VS_LAYER_DRIVER, false);
    cr_assert_neq(site, 0);
    return vs_state_owner_name(state, vs_state_site(state, site)->owner);
}

Test(owners, behind_a_bridge_it_is_the_python_code)
{
    struct vs_state *state;
    struct vs_names names = {.string = string_of, .module_path = module_of, .code = code_of};
    cr_assert_eq(vs_state_create(&names, &state), 0);
    for (int turn = 0; turn < 2; turn++) { /* found, and remembered */
        for (uint32_t bridge = 1; bridge <= 4; bridge++) {
            cr_expect_str_eq(owner(state, bridge, NUMBA), "numba");
            cr_expect_str_eq(owner(state, bridge, SCRIPT), "the program");
            cr_expect_str_eq(owner(state, bridge, TYPED), "the program");
            cr_expect_str_eq(owner(state, bridge, ONE_FILE), "pocket");
            cr_expect_str_eq(owner(state, bridge, MADE_METHOD), "a");
        }
        cr_expect_str_eq(owner(state, 6, SCRIPT), "libnccl");
        cr_expect_str_eq(owner(state, 5, SCRIPT), "cupy");
        cr_expect_str_eq(owner(state, 7, NUMBA), "train");
        cr_expect_str_eq(owner(state, 8, NUMBA), "numba");
    }
    vs_state_destroy(state);
}

Test(owners, a_bridge_that_nobody_is_seen_behind_goes_by_its_name)
{
    struct vs_state *state;
    struct vs_names names = {.string = string_of, .module_path = module_of, .code = code_of};
    cr_assert_eq(vs_state_create(&names, &state), 0);
    cr_expect_str_eq(owner(state, 1, LIBRARY_ONLY), "libffi");
    cr_expect_str_eq(owner(state, 2, NOT_KNOWN), "_ctypes");
    cr_expect_str_eq(owner(state, 1, 0), "libffi");
    vs_state_destroy(state);
    names.code = NULL;
    cr_assert_eq(vs_state_create(&names, &state), 0);
    cr_expect_str_eq(owner(state, 1, NUMBA), "libffi");
    vs_state_destroy(state);
}
