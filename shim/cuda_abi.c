/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arithmetic on CUDA's descriptors: the bytes of an array by its format, the
 * hash that tells IPC handles apart.
 */
#include "cuda_abi.h"

#define FNV_OFFSET 0xcbf29ce484222325ULL
#define FNV_PRIME 0x100000001b3ULL

uint64_t cu_ipc_hash(const struct cu_ipc_handle *handle)
{
    if (handle == NULL) {
        return 0;
    }
    uint64_t hash = FNV_OFFSET;
    for (size_t i = 0; i < sizeof(handle->bytes); i++) {
        hash = (hash ^ handle->bytes[i]) * FNV_PRIME;
    }
    return hash;
}

/*
 * Bits of one element: of one channel where `per_channel`, else of the whole
 * texel. Formats as in CUarray_format; the planar video formats are averages
 * over their planes.
 */
struct format_bits {
    uint8_t first, last;
    uint8_t bits;
    uint8_t per_channel;
};

static const struct format_bits formats[] = {
    {0x01, 0x01, 8, 1},  {0x02, 0x02, 16, 1}, {0x03, 0x03, 32, 1}, {0x08, 0x08, 8, 1},
    {0x09, 0x09, 16, 1}, {0x0a, 0x0a, 32, 1}, {0x10, 0x10, 16, 1}, {0x20, 0x20, 32, 1},
    {0x50, 0x50, 32, 0},                      /* RGB 10:10:10:2 */
    {0x91, 0x92, 4, 0},                       /* BC1 */
    {0x93, 0x96, 8, 0},                       /* BC2, BC3 */
    {0x97, 0x98, 4, 0},                       /* BC4 */
    {0x99, 0x9e, 8, 0},                       /* BC5, BC6H, BC7 */
    {0x9f, 0x9f, 24, 0}, {0xa1, 0xa1, 24, 0}, /* P010, P016: 4:2:0 of 16 bits */
    {0xa2, 0xa2, 16, 0},                      /* NV16: 4:2:2 of 8 bits */
    {0xa3, 0xa4, 32, 0},                      /* P210, P216 */
    {0xa5, 0xa5, 16, 0}, {0xa6, 0xa7, 32, 0}, /* YUY2; Y210, Y216 */
    {0xa8, 0xa9, 32, 0},                      /* AYUV, Y410 */
    {0xb0, 0xb0, 12, 0},                      /* NV12: 4:2:0 of 8 bits */
    {0xb1, 0xb1, 64, 0},                      /* Y416 */
    {0xb2, 0xb2, 24, 0}, {0xb3, 0xb3, 48, 0}, /* 4:4:4 planar of 8 and 16 bits */
    {0xb4, 0xb4, 24, 0}, {0xb5, 0xb5, 48, 0}, /* 4:4:4 semi-planar */
    {0xc0, 0xc0, 8, 0},  {0xc1, 0xc1, 16, 0}, {0xc2, 0xc2, 32, 0}, {0xc3, 0xc3, 16, 0},
    {0xc4, 0xc4, 32, 0}, {0xc5, 0xc5, 64, 0}, {0xc6, 0xc6, 8, 0},  {0xc7, 0xc7, 16, 0},
    {0xc8, 0xc8, 32, 0}, {0xc9, 0xc9, 16, 0}, {0xca, 0xca, 32, 0}, {0xcb, 0xcb, 64, 0},
};

static uint64_t texel_bits(int format, unsigned channels)
{
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        if (format >= formats[i].first && format <= formats[i].last) {
            return formats[i].per_channel ? (uint64_t)formats[i].bits * channels : formats[i].bits;
        }
    }
    return 0;
}

static size_t at_least_one(size_t extent)
{
    return extent > 0 ? extent : 1;
}

/* Each mipmap level halves every extent, down to one; the number of layers stays. */
static uint64_t extent_bytes(uint64_t bits, struct cuda_extent extent, unsigned levels,
                             unsigned flags)
{
    unsigned depth_shift = (flags & ABI_ARRAY_LAYERED) != 0 ? 0 : 1;
    uint64_t bytes = 0;
    for (unsigned level = 0; level < levels && level < 64; level++) {
        uint64_t texels = at_least_one(extent.width >> level) *
                          at_least_one(extent.height >> level) *
                          at_least_one(extent.depth >> (level * depth_shift));
        bytes += (bits * texels + 7) / 8;
    }
    return bytes;
}

uint64_t cu_array_bytes(const struct cu_array *array)
{
    if (array == NULL) {
        return 0;
    }
    struct cuda_extent extent = {array->width, array->height, 0};
    return extent_bytes(texel_bits(array->format, array->channels), extent, 1, 0);
}

uint64_t cu_array3d_bytes(const struct cu_array3d *array, unsigned levels)
{
    if (array == NULL) {
        return 0;
    }
    struct cuda_extent extent = {array->width, array->height, array->depth};
    return extent_bytes(texel_bits(array->format, array->channels), extent, levels, array->flags);
}

uint64_t cuda_array_bytes(const struct cuda_channel *channel, size_t width, size_t height,
                          size_t depth, unsigned levels, unsigned flags)
{
    if (channel == NULL) {
        return 0;
    }
    uint64_t bits = 0;
    for (int i = 0; i < 4; i++) {
        bits += (uint64_t)channel->bits[i];
    }
    struct cuda_extent extent = {width, height, depth};
    return extent_bytes(bits, extent, levels, flags);
}
