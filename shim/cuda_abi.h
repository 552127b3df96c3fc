/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The few CUDA structures whose fields the hooks read, as the ABI lays them out
 * (CUDA 11 to 13; tests/unit/test_cuda_abi.c holds each against the toolkit's
 * own headers). Handles are void *, device addresses uint64_t, so that the shim
 * is built without CUDA's headers and one wrapper serves every version.
 *
 * Every reader here takes what the program passed: a null pointer reads as 0.
 */
#ifndef VS_SHIM_CUDA_ABI_H
#define VS_SHIM_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

#include "../formats/record.h"

enum {
    ABI_SUCCESS = 0,
    ABI_NOT_FOUND = 500, /* also cudaErrorSymbolNotFound */
    ABI_NOT_READY = 600,
    ABI_CAPTURE_UNMATCHED = 903,
    ABI_CAPTURE_WRONG_THREAD = 908,
    ABI_DEVICE_ATTRIBUTE_INTEGRATED = 18,
    ABI_POOL_RELEASE_THRESHOLD = 4, /* attributes from here on are 64 bits wide, those before 32 */
    ABI_POINTER_RANGE_SIZE = 12,
    ABI_POOL_RESERVED_CURRENT = 5,
    ABI_POOL_USED_CURRENT = 7,
    ABI_NODE_ALLOC = 10,
    ABI_NODE_FREE = 11,
    ABI_CAPTURE_STATUS_NONE = 0,
    ABI_STREAM_PER_THREAD = 2,
    ABI_ARRAY_LAYERED = 1,           /* depth counts layers; also cudaArrayLayered */
    ABI_QUERY_PER_THREAD_STREAM = 2, /* cuGetProcAddress flags */
};

struct cu_location {
    int type; /* 1: device */
    int id;
};

/* CUmemAllocationProp */
struct cu_memory_props {
    int type;
    int handle_types;
    struct cu_location location;
};

/* CUmemAccessDesc */
struct cu_access {
    struct cu_location location;
    int flags;
};

/* CUmemPoolProps */
struct cu_pool_props {
    int type;
    int handle_types;
    struct cu_location location;
    void *security;
    size_t max_bytes;
    unsigned char reserved[56];
};

/* CUmulticastObjectProp */
struct cu_multicast_props {
    unsigned device_count;
    size_t bytes;
};

/* CUDA_ARRAY_DESCRIPTOR */
struct cu_array {
    size_t width, height;
    int format;
    unsigned channels;
};

/* CUDA_ARRAY3D_DESCRIPTOR */
struct cu_array3d {
    size_t width, height, depth;
    int format;
    unsigned channels;
    unsigned flags;
};

/* CUipcMemHandle, CUmemPoolPtrExportData and their runtime twins: 64 opaque bytes, passed by value
 */
struct cu_ipc_handle {
    unsigned char bytes[64];
};

/* CUDA_EXTERNAL_MEMORY_HANDLE_DESC */
struct cu_external_memory {
    int type;
    void *handle[2];
    unsigned long long bytes;
};

/* CUDA_EXTERNAL_MEMORY_BUFFER_DESC */
struct cu_external_buffer {
    unsigned long long offset;
    unsigned long long bytes;
};

/* CUDA_MEM_ALLOC_NODE_PARAMS */
struct cu_alloc_node {
    struct cu_pool_props pool;
    const struct cu_access *access;
    size_t access_count;
    size_t bytes;
    uint64_t address; /* out */
};

/* CUgraphNodeParams: the two kinds of node that matter here */
struct cu_node {
    int type;
    int reserved[3];
    union {
        struct cu_alloc_node alloc;
        uint64_t freed;
    } u;
};

/* cudaPitchedPtr, cudaExtent, cudaChannelFormatDesc */
struct cuda_pitched {
    void *address;
    size_t pitch, width, height;
};

struct cuda_extent {
    size_t width, height, depth;
};

struct cuda_channel {
    int bits[4];
    int kind;
};

/* c10::Device: by value, in one register */
struct c10_device {
    int8_t type;
    int8_t index;
};

/* c10::cuda::CUDAStream: by value, in two registers */
struct c10_stream {
    uint64_t device;
    int64_t id;
};

/* ncclUniqueId: by value, in memory */
struct nccl_unique_id {
    char internal[128];
};

static inline uint64_t cu_memory_location(const struct cu_memory_props *props)
{
    return props != NULL ? (uint64_t)props->location.type : 0;
}

/* The device that will hold the memory; unknown when it is the host's. */
static inline int cu_location_device(struct cu_location location)
{
    return location.type == 1 ? location.id : VS_DEVICE_UNKNOWN;
}

static inline int cu_memory_device(const struct cu_memory_props *props)
{
    return props != NULL ? cu_location_device(props->location) : VS_DEVICE_UNKNOWN;
}

static inline uint64_t cu_pool_location(const struct cu_pool_props *props)
{
    return props != NULL ? (uint64_t)props->location.type : 0;
}

static inline int cu_pool_device(const struct cu_pool_props *props)
{
    return props != NULL ? cu_location_device(props->location) : VS_DEVICE_UNKNOWN;
}

static inline uint64_t cu_pool_max(const struct cu_pool_props *props)
{
    return props != NULL ? props->max_bytes : 0;
}

static inline uint64_t cu_pool_value(int attribute, const void *value)
{
    if (value == NULL) {
        return 0;
    }
    return attribute < ABI_POOL_RELEASE_THRESHOLD ? (uint64_t) * (const int *)value
                                                  : *(const uint64_t *)value;
}

static inline uint64_t cu_access_device(const struct cu_access *access, size_t count)
{
    return access != NULL && count > 0 ? (uint64_t)access->location.id : 0;
}

static inline uint64_t cu_multicast_bytes(const struct cu_multicast_props *props)
{
    return props != NULL ? props->bytes : 0;
}

static inline uint64_t cu_external_bytes(const struct cu_external_memory *external)
{
    return external != NULL ? external->bytes : 0;
}

static inline uint64_t cu_external_buffer_bytes(const struct cu_external_buffer *buffer)
{
    return buffer != NULL ? buffer->bytes : 0;
}

static inline uint64_t cu_alloc_node_bytes(const struct cu_alloc_node *node)
{
    return node != NULL ? node->bytes : 0;
}

static inline uint64_t cu_alloc_node_address(const struct cu_alloc_node *node)
{
    return node != NULL ? node->address : 0;
}

static inline uint8_t cu_node_kind(const struct cu_node *node)
{
    if (node != NULL && node->type == ABI_NODE_ALLOC) {
        return VS_KIND_GRAPH_ALLOC_NODE;
    }
    if (node != NULL && node->type == ABI_NODE_FREE) {
        return VS_KIND_GRAPH_FREE_NODE;
    }
    return VS_KIND_OTHER_CALL;
}

static inline uint64_t cu_node_bytes(const struct cu_node *node)
{
    return node != NULL && node->type == ABI_NODE_ALLOC ? node->u.alloc.bytes : 0;
}

static inline uint64_t cu_node_freed(const struct cu_node *node)
{
    return node != NULL && node->type == ABI_NODE_FREE ? node->u.freed : 0;
}

/* After the call: the address an allocation node was given, or the one a free node names. */
static inline uint64_t cu_node_address(const struct cu_node *node)
{
    return node != NULL && node->type == ABI_NODE_ALLOC ? node->u.alloc.address
                                                        : cu_node_freed(node);
}

static inline uint64_t cuda_pitched_address(const struct cuda_pitched *pitched)
{
    return pitched != NULL ? (uint64_t)(uintptr_t)pitched->address : 0;
}

static inline uint64_t cuda_pitched_pitch(const struct cuda_pitched *pitched)
{
    return pitched != NULL ? pitched->pitch : 0;
}

/* FNV-1a, 64 bits, over the 64 bytes: the same handle hashes alike in every process. */
uint64_t cu_ipc_hash(const struct cu_ipc_handle *handle);

/* Bytes by descriptor, mipmap levels summed; 0 when the format is not known. */
uint64_t cu_array_bytes(const struct cu_array *array);
uint64_t cu_array3d_bytes(const struct cu_array3d *array, unsigned levels);
uint64_t cuda_array_bytes(const struct cuda_channel *channel, size_t width, size_t height,
                          size_t depth, unsigned levels, unsigned flags);

#endif
