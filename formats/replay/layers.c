/* SPDX-License-Identifier: Apache-2.0 */
/* The caching layers there are: another framework's is another row, and its hooks in shim/. */
#include "layers.h"

#include <stddef.h>
#include <string.h>

static const struct vs_caching_layer layers[] = {
    {.title = "PyTorch",
     .give_back = "torch.cuda.empty_cache()",
     .library = "libc10_",
     .block_calls = "_ZN3c10",
     .library_takes_segments = true,
     .host_library = "libtorch_cuda"},
    {.title = "OneFlow",
     .library = "liboneflow",
     .block_calls = "_ZN7oneflow2vm12BinAllocator",
     .segment_call = "_ZN7oneflow2vm12BinAllocatorINS0_14ThreadSafeLockEE"
                     "29AllocateBlockToExtendTotalMemEm",
     .by_place = true},
};

static bool begins_with(const char *text, const char *beginning)
{
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

const struct vs_caching_layer *vs_layer_of_library(const char *name)
{
    for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++)
        if (begins_with(name, layers[i].library))
            return &layers[i];
    return NULL;
}

bool vs_layer_keeps_host_memory(const char *name)
{
    for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++)
        if (layers[i].host_library != NULL && strcmp(name, layers[i].host_library) == 0)
            return true;
    return false;
}

const struct vs_caching_layer *vs_layer_of_call(const char *call)
{
    for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++)
        if (begins_with(call, layers[i].block_calls))
            return &layers[i];
    return NULL;
}

bool vs_layer_takes_segments(const char *call)
{
    const struct vs_caching_layer *layer = vs_layer_of_call(call);
    return layer != NULL && layer->segment_call != NULL && strcmp(call, layer->segment_call) == 0;
}
