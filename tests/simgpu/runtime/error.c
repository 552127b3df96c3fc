/* SPDX-License-Identifier: Apache-2.0 */
/* Error names, error texts and the thread's last error. */
#include "runtime.h"

#include <cuda_runtime_api.h>
#include <string.h>
#include <strings.h>

static const struct {
    int code;
    const char *name, *text;
} errors[] = {
#define ERROR(name, code, text) {code, #name, text},
#include "error_names.def"
#undef ERROR
};

/* The names of --fail are the driver's, without prefix; the runtime's own names work too. */
static const struct {
    int code;
    const char *name;
} driver_errors[] = {
#define ERROR(code, name, text) {code, #name},
#include "../driver/errors.def"
#undef ERROR
};

static bool same_name(const char *name, const char *full, const char *prefix)
{
    size_t length = strlen(prefix);
    return strcasecmp(name, full) == 0 ||
           (strncmp(full, prefix, length) == 0 && strcasecmp(name, full + length) == 0);
}

int simrt_error_number(const char *name)
{
    for (size_t i = 0; i < sizeof(driver_errors) / sizeof(*driver_errors); i++)
        if (same_name(name, driver_errors[i].name, "CUDA_ERROR_"))
            return driver_errors[i].code;
    for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++)
        if (same_name(name, errors[i].name, "cudaError"))
            return errors[i].code;
    return -1;
}

cudaError_t cudaGetLastError(void)
{
    return simrt_last_error(true);
}

cudaError_t cudaPeekAtLastError(void)
{
    return simrt_last_error(false);
}

const char *cudaGetErrorName(cudaError_t error)
{
    for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++)
        if (errors[i].code == (int)error)
            return errors[i].name;
    return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error)
{
    for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++)
        if (errors[i].code == (int)error)
            return errors[i].text;
    return "unrecognized error code";
}
