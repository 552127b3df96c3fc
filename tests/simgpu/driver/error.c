/* SPDX-License-Identifier: Apache-2.0 */
/* Names and texts of errors. */
#include "driver.h"

#include <string.h>
#include <strings.h>

struct error_text {
    int number;
    const char *name;
    const char *text;
};

static const struct error_text errors[] = {
#define ERROR(number, name, text) {number, #name, text},
#include "errors.def"
#undef ERROR
};

static const struct error_text *find_error(CUresult error)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].number == (int)error)
            return &errors[i];
    return NULL;
}

int sim_error_number(const char *name)
{
    static const char prefix[] = "CUDA_ERROR_";
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        const char *full = errors[i].name;
        bool has_prefix = strncmp(full, prefix, sizeof prefix - 1) == 0;
        if (strcasecmp(full, name) == 0 ||
            (has_prefix && strcasecmp(full + sizeof prefix - 1, name) == 0))
            return errors[i].number;
    }
    return -1;
}

CUresult CUDAAPI cuGetErrorString(CUresult error, const char **pStr)
{
    if (!pStr)
        return CUDA_ERROR_INVALID_VALUE;
    const struct error_text *found = find_error(error);
    *pStr = found ? found->text : NULL;
    return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuGetErrorName(CUresult error, const char **pStr)
{
    if (!pStr)
        return CUDA_ERROR_INVALID_VALUE;
    const struct error_text *found = find_error(error);
    *pStr = found ? found->name : NULL;
    return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
