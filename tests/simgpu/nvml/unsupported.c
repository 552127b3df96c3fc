/* SPDX-License-Identifier: Apache-2.0 */
/* Queries without an answer here. Their arguments are never looked at, so they
 * are declared without any. */
#include "nvml.h"

#define UNSUPPORTED(name)                \
    nvmlReturn_t name(void);             \
    nvmlReturn_t name(void)              \
    {                                    \
        return NVML_ERROR_NOT_SUPPORTED; \
    }
#include "unsupported.def"
