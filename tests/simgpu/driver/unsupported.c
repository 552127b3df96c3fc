/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points that exist, as in the real library, but are not simulated: each says its name on
 * stderr and returns CUDA_ERROR_NOT_SUPPORTED. Their arguments are not looked at, so cuda.h's
 * prototypes are not needed here.
 */
int sim_unsupported(const char *symbol);

#define UNSUPPORTED(symbol)              \
    int symbol(void);                    \
    int symbol(void)                     \
    {                                    \
        return sim_unsupported(#symbol); \
    }
#include "unsupported.def"
