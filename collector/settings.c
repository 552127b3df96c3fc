/* SPDX-License-Identifier: Apache-2.0 */
/* The allow-list of environment variables. */
#include "settings.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "privacy.h"

static const char *const allowed_prefixes[] = {"CUDA_", "NCCL_", "XLA_", "TF_", "VRAMSCOPE_"};

static const char *const allowed_names[] = {
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "GROUP_RANK",
    "ROLE_RANK",
    "NODE_RANK",
    "SLURM_JOB_ID",
    "SLURM_JOBID",
    "SLURM_STEP_ID",
    "SLURM_PROCID",
    "SLURM_NODEID",
    "SLURM_LOCALID",
    "SLURM_ARRAY_JOB_ID",
    "SLURM_ARRAY_TASK_ID",
    "SLURM_NTASKS",
    "SLURM_NNODES",
    "SLURM_NPROCS",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "PMI_RANK",
    "PMI_SIZE",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "OMPI_COMM_WORLD_NODE_RANK",
};

static const char *const credential_words[] = {"TOKEN", "KEY", "SECRET", "PASS"};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool name_in(const char *const *names, size_t count, const char *name, size_t bytes)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(names[i]) == bytes && memcmp(names[i], name, bytes) == 0)
            return true;
    return false;
}

static bool looks_like_credential(const char *name, size_t bytes)
{
    for (size_t word = 0; word < COUNT(credential_words); word++) {
        size_t length = strlen(credential_words[word]);
        for (size_t at = 0; at + length <= bytes; at++)
            if (strncasecmp(name + at, credential_words[word], length) == 0)
                return true;
    }
    return false;
}

static bool is_allocator_setting(const char *name, size_t bytes)
{
    static const char first[] = "PYTORCH_", last[] = "ALLOC_CONF";
    size_t first_bytes = sizeof first - 1, last_bytes = sizeof last - 1;
    return bytes >= first_bytes + last_bytes && memcmp(name, first, first_bytes) == 0 &&
           memcmp(name + bytes - last_bytes, last, last_bytes) == 0;
}

/* What our own parts tell each other is no setting of the program. */
static bool is_internal(const char *name, size_t bytes)
{
    static const char *const names[] = {"VRAMSCOPE_TARGET_LIBRARY_PATH", "VRAMSCOPE_RUN_DIR"};
    return name_in(names, COUNT(names), name, bytes);
}

/* Terraform's variables share TensorFlow's prefix and hold what people put into them. */
static bool is_terraform(const char *name, size_t bytes)
{
    static const char *const prefixes[] = {"TF_VAR_", "TF_CLI_"};
    for (size_t i = 0; i < COUNT(prefixes); i++)
        if (bytes >= strlen(prefixes[i]) && strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

bool settings_allowed(const char *name, size_t name_bytes)
{
    if (looks_like_credential(name, name_bytes) || is_internal(name, name_bytes) ||
        is_terraform(name, name_bytes))
        return false;
    if (is_allocator_setting(name, name_bytes))
        return true;
    for (size_t i = 0; i < COUNT(allowed_prefixes); i++)
        if (strncmp(name, allowed_prefixes[i], strlen(allowed_prefixes[i])) == 0 &&
            name_bytes > strlen(allowed_prefixes[i]))
            return true;
    return name_in(allowed_names, COUNT(allowed_names), name, name_bytes);
}

const char *settings_find(const char *const *environment, const char *name)
{
    size_t bytes = strlen(name);
    for (; environment && *environment; environment++)
        if (strncmp(*environment, name, bytes) == 0 && (*environment)[bytes] == '=')
            return (*environment)[bytes + 1] ? *environment + bytes + 1 : NULL;
    return NULL;
}

static bool is_number(const char *text)
{
    if (!text || !*text)
        return false;
    for (; *text; text++)
        if (!isdigit((unsigned char)*text))
            return false;
    return true;
}

static const char *first_number(const char *const *environment, const char *const *names)
{
    for (; *names; names++) {
        const char *value = settings_find(environment, *names);
        if (is_number(value))
            return value;
    }
    return NULL;
}

const char *settings_rank(const char *const *environment)
{
    static const char *const names[] = {"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK",
                                        NULL};
    return first_number(environment, names);
}

const char *settings_local_rank(const char *const *environment)
{
    static const char *const names[] = {"LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK",
                                        NULL};
    return first_number(environment, names);
}

const char *settings_world_size(const char *const *environment)
{
    static const char *const names[] = {"WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE",
                                        "PMI_SIZE", NULL};
    return first_number(environment, names);
}

const char *settings_job_id(const char *const *environment)
{
    static const char *const names[] = {"SLURM_JOB_ID", "SLURM_JOBID", NULL};
    return first_number(environment, names);
}

static json_t *setting_value(const char *value, bool hide_paths)
{
    char text[SETTINGS_VALUE_MAX + 8];
    if (hide_paths && strchr(value, '/')) {
        privacy_hash(value, text, sizeof text);
        return json_string(text);
    }
    size_t bytes = strlen(value);
    if (bytes <= SETTINGS_VALUE_MAX)
        return privacy_json_text(value, bytes);
    snprintf(text, sizeof text, "%.*s...", (int)SETTINGS_VALUE_MAX, value); /* there was more */
    return privacy_json_text(text, strlen(text));
}

json_t *settings_collect(const char *const *environment, bool hide_paths)
{
    json_t *settings = json_object();
    for (; settings && environment && *environment; environment++) {
        const char *equals = strchr(*environment, '=');
        size_t name_bytes = equals ? (size_t)(equals - *environment) : 0;
        char name[128];
        if (name_bytes == 0 || name_bytes >= sizeof name ||
            !settings_allowed(*environment, name_bytes))
            continue;
        memcpy(name, *environment, name_bytes);
        name[name_bytes] = 0;
        json_object_set_new(settings, name, setting_value(equals + 1, hide_paths));
    }
    return settings;
}
