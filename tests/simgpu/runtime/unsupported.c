/* SPDX-License-Identifier: Apache-2.0 */
/* Entry points that exist only to say that they are not simulated. Their
 * arguments are never looked at, so they are declared without any. */
#include "runtime.h"

#define UNSUPPORTED(name)                \
    cudaError_t name(void);              \
    cudaError_t name(void)               \
    {                                    \
        return simrt_unsupported(#name); \
    }
#if SIMRT_MAJOR >= 13
#define UNSUPPORTED_12(name)
#define UNSUPPORTED_13(name) UNSUPPORTED(name)
#else
#define UNSUPPORTED_12(name) UNSUPPORTED(name)
#define UNSUPPORTED_13(name)
#endif
#include "unsupported.def"
