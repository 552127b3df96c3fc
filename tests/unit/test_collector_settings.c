/* SPDX-License-Identifier: Apache-2.0 */
/* Decision 13: which variables may be kept, and that nothing else is. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "../../collector/privacy.h"
#include "../../collector/settings.h"

static bool allowed(const char *name)
{
    return settings_allowed(name, strlen(name));
}

Test(collector_settings, what_explains_memory_is_kept)
{
    static const char *const names[] = {"PYTORCH_CUDA_ALLOC_CONF",
                                        "PYTORCH_ALLOC_CONF",
                                        "PYTORCH_HIP_ALLOC_CONF",
                                        "CUDA_VISIBLE_DEVICES",
                                        "NCCL_DEBUG",
                                        "XLA_PYTHON_CLIENT_MEM_FRACTION",
                                        "TF_GPU_ALLOCATOR",
                                        "RANK",
                                        "WORLD_SIZE",
                                        "LOCAL_RANK",
                                        "SLURM_JOB_ID",
                                        "OMPI_COMM_WORLD_RANK",
                                        "VRAMSCOPE_STACKS"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        cr_assert(allowed(names[i]), "%s", names[i]);
}

Test(collector_settings, nothing_else_is)
{
    static const char *const names[] = {"HOME",       "PATH",          "USER",
                                        "HF_TOKEN",   "WANDB_API_KEY", "PYTORCH_",
                                        "ALLOC_CONF", "PYTORCH_JIT",   "SLURM_JOB_USER",
                                        "SLURM_CONF", "RANKS",         "XRANK",
                                        "CUDA_",      "MY_CUDA_HOME",  "OMPI_COMM_WORLD",
                                        "",           "LD_PRELOAD",    "PYTORCH_X_ALLOC_CONFIG"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        cr_assert_not(allowed(names[i]), "%s", names[i]);
}

Test(collector_settings, what_may_hold_a_credential_never_is)
{
    static const char *const names[] = {
        "NCCL_TOKEN",       "CUDA_API_KEY",          "TF_SECRET",         "TF_VAR_database",
        "TF_CLI_ARGS",      "XLA_password",          "VRAMSCOPE_MyToken", "NCCL_PASSPHRASE",
        "CUDA_secret_PATH", "PYTORCH_KEY_ALLOC_CONF"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        cr_assert_not(allowed(names[i]), "%s", names[i]);
}

Test(collector_settings, our_own_wiring_is_no_setting)
{
    cr_assert_not(allowed("VRAMSCOPE_TARGET_LIBRARY_PATH"));
    cr_assert_not(allowed("VRAMSCOPE_RUN_DIR"));
}

Test(collector_settings, ranks_in_their_order)
{
    static const char *const all[] = {"PMI_RANK=4", "OMPI_COMM_WORLD_RANK=3", "SLURM_PROCID=2",
                                      "RANK=1", NULL};
    cr_assert_str_eq(settings_rank(all), "1");
    cr_assert_str_eq(settings_rank((const char *const[]){all[0], all[1], all[2], NULL}), "2");
    cr_assert_str_eq(settings_rank((const char *const[]){all[0], all[1], NULL}), "3");
    cr_assert_str_eq(settings_rank((const char *const[]){all[0], NULL}), "4");
    cr_assert_null(settings_rank((const char *const[]){"RANKS=1", NULL}));
}

Test(collector_settings, a_rank_is_a_number)
{
    static const char *const words[] = {"RANK=../../x", "SLURM_PROCID=", "PMI_RANK=7", NULL};
    cr_assert_str_eq(settings_rank(words), "7");
}

Test(collector_settings, the_object_holds_exactly_the_allowed)
{
    char cut[SETTINGS_VALUE_MAX + 64] = "NCCL_LONG=";
    memset(cut + strlen(cut), 'x', SETTINGS_VALUE_MAX + 8);
    const char *const environment[] = {
        "HF_TOKEN=hf_abc", "CUDA_HOME=/home/ann/cuda", "TF_X=\xff", "RANK=0", cut, "NOVALUE", NULL};
    json_t *settings = settings_collect(environment, false);
    cr_assert_eq(json_object_size(settings), 4);
    cr_assert_str_eq(json_string_value(json_object_get(settings, "CUDA_HOME")), "/home/ann/cuda");
    cr_assert_str_eq(json_string_value(json_object_get(settings, "TF_X")), "?");
    cr_assert_eq(json_string_length(json_object_get(settings, "NCCL_LONG")),
                 SETTINGS_VALUE_MAX + 3);
    json_decref(settings);
}

Test(collector_settings, private_hides_paths_in_values)
{
    static const char *const environment[] = {"CUDA_HOME=/home/ann/cuda", "NCCL_DEBUG=INFO", NULL};
    json_t *settings = settings_collect(environment, true);
    char *text = json_dumps(settings, 0);
    cr_assert_null(strstr(text, "ann"));
    cr_assert_not_null(strstr(text, "INFO"));
    free(text);
    json_decref(settings);
}

Test(collector_privacy, paths)
{
    char out[256], same[256];
    privacy_path("/home/ann/env/lib/python3/site-packages/torch/lib/libc10.so", out, sizeof out);
    cr_assert_null(strstr(out, "ann"));
    cr_assert_not_null(strstr(out, "/site-packages/torch/lib/libc10.so"));
    privacy_path("/home/ann/env/lib/python3.11/threading.py", out, sizeof out);
    cr_assert_str_eq(out + PRIVACY_HASH_BYTES - 1, "/lib/python3.11/threading.py");
    privacy_path("/home/ann/lib/python_tools/model.py", out, sizeof out);
    cr_assert_eq(strlen(out), 2 * (PRIVACY_HASH_BYTES - 1) + strlen("/.py"), "%s", out);
    cr_assert_null(strstr(out, "python_tools"));
    cr_assert_null(strstr(out, "model"));
    privacy_path("/usr/lib/x86_64-linux-gnu/libcuda.so.1", out, sizeof out);
    cr_assert_not_null(strstr(out, "/libcuda.so.1"));
    privacy_path("/home/ann/secret_project/libmine.so.3", out, sizeof out);
    cr_assert_null(strstr(out, "mine"));
    cr_assert_null(strstr(out, "secret"));
    privacy_path("/home/ann/secret_project/libmine.so.3", same, sizeof same);
    cr_assert_str_eq(out, same);
}

Test(collector_privacy, json_text_is_always_utf8)
{
    static const char text[] =
        "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80|\xc0\xaf|\xed\xa0\x80|\xf5|\xe2\x82";
    json_t *value = privacy_json_text(text, sizeof text - 1);
    cr_assert_str_eq(json_string_value(value), "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80|??|???|?|??");
    json_decref(value);
}
