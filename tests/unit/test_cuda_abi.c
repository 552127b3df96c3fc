/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shim's own copies of CUDA's structures against the headers at hand, and
 * the arithmetic on descriptors.
 */
#include <criterion/criterion.h>
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stddef.h>

#include "../../shim/cuda_abi.h"

#define SAME(ours, our_field, theirs, their_field)                                    \
    _Static_assert(offsetof(struct ours, our_field) == offsetof(theirs, their_field), \
                   #ours "." #our_field)
#define SAME_SIZE(ours, theirs) _Static_assert(sizeof(struct ours) == sizeof(theirs), #ours)

SAME(cu_memory_props, location, CUmemAllocationProp, location);
SAME_SIZE(cu_location, CUmemLocation);
SAME_SIZE(cu_access, CUmemAccessDesc);
SAME_SIZE(cu_pool_props, CUmemPoolProps);
SAME(cu_pool_props, location, CUmemPoolProps, location);
SAME(cu_pool_props, max_bytes, CUmemPoolProps, maxSize);
SAME_SIZE(cu_pool_props, struct cudaMemPoolProps);
SAME(cu_pool_props, location, struct cudaMemPoolProps, location);
SAME(cu_pool_props, max_bytes, struct cudaMemPoolProps, maxSize);
SAME(cu_multicast_props, bytes, CUmulticastObjectProp, size);
SAME_SIZE(cu_array, CUDA_ARRAY_DESCRIPTOR);
SAME(cu_array, channels, CUDA_ARRAY_DESCRIPTOR, NumChannels);
SAME_SIZE(cu_array3d, CUDA_ARRAY3D_DESCRIPTOR);
SAME(cu_array3d, format, CUDA_ARRAY3D_DESCRIPTOR, Format);
SAME(cu_array3d, flags, CUDA_ARRAY3D_DESCRIPTOR, Flags);
SAME_SIZE(cu_ipc_handle, CUipcMemHandle);
SAME_SIZE(cu_ipc_handle, cudaIpcMemHandle_t);
SAME_SIZE(cu_ipc_handle, CUmemPoolPtrExportData);
SAME(cu_external_memory, bytes, CUDA_EXTERNAL_MEMORY_HANDLE_DESC, size);
SAME(cu_external_memory, bytes, struct cudaExternalMemoryHandleDesc, size);
SAME(cu_external_buffer, bytes, CUDA_EXTERNAL_MEMORY_BUFFER_DESC, size);
SAME(cu_external_buffer, bytes, struct cudaExternalMemoryBufferDesc, size);
SAME_SIZE(cu_alloc_node, CUDA_MEM_ALLOC_NODE_PARAMS);
SAME(cu_alloc_node, bytes, CUDA_MEM_ALLOC_NODE_PARAMS, bytesize);
SAME(cu_alloc_node, address, CUDA_MEM_ALLOC_NODE_PARAMS, dptr);
SAME(cu_alloc_node, address, struct cudaMemAllocNodeParams, dptr);
SAME(cu_node, u.alloc, CUgraphNodeParams, alloc);
SAME(cu_node, u.freed, CUgraphNodeParams, free.dptr);
SAME(cu_node, u.alloc.address, CUgraphNodeParams, alloc.dptr);
SAME(cu_node, u.alloc.address, struct cudaGraphNodeParams, alloc.dptr);
SAME_SIZE(cuda_pitched, struct cudaPitchedPtr);
SAME(cuda_pitched, pitch, struct cudaPitchedPtr, pitch);
SAME_SIZE(cuda_extent, struct cudaExtent);
SAME_SIZE(cuda_channel, struct cudaChannelFormatDesc);

_Static_assert((int)ABI_NOT_FOUND == (int)CUDA_ERROR_NOT_FOUND, "");
_Static_assert((int)ABI_NOT_READY == (int)CUDA_ERROR_NOT_READY, "");
_Static_assert((int)ABI_CAPTURE_UNMATCHED == (int)CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "");
_Static_assert((int)ABI_CAPTURE_WRONG_THREAD == (int)CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "");
_Static_assert((int)ABI_POOL_RELEASE_THRESHOLD == (int)CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, "");
_Static_assert((int)ABI_POINTER_RANGE_SIZE == (int)CU_POINTER_ATTRIBUTE_RANGE_SIZE, "");
_Static_assert((int)ABI_POOL_RESERVED_CURRENT == (int)CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, "");
_Static_assert((int)ABI_POOL_USED_CURRENT == (int)CU_MEMPOOL_ATTR_USED_MEM_CURRENT, "");
_Static_assert((int)ABI_NODE_ALLOC == (int)CU_GRAPH_NODE_TYPE_MEM_ALLOC, "");
_Static_assert((int)ABI_NODE_FREE == (int)CU_GRAPH_NODE_TYPE_MEM_FREE, "");
_Static_assert((int)ABI_ARRAY_LAYERED == (int)CUDA_ARRAY3D_LAYERED, "");
_Static_assert((int)ABI_QUERY_PER_THREAD_STREAM ==
                   (int)CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
               "");

Test(cuda_abi, arrays_by_descriptor)
{
    struct cu_array floats = {2048, 0, CU_AD_FORMAT_FLOAT, 1};
    cr_expect_eq(cu_array_bytes(&floats), 8192);
    struct cu_array halves = {64, 32, CU_AD_FORMAT_HALF, 4};
    cr_expect_eq(cu_array_bytes(&halves), 64 * 32 * 8);
    struct cu_array3d box = {16, 8, 4, CU_AD_FORMAT_UNSIGNED_INT8, 2, 0};
    cr_expect_eq(cu_array3d_bytes(&box, 1), 16 * 8 * 4 * 2);
    struct cu_array unknown = {64, 64, 0x7f, 1};
    cr_expect_eq(cu_array_bytes(&unknown), 0);
    cr_expect_eq(cu_array_bytes(NULL), 0);
}

Test(cuda_abi, block_compressed_and_planar_formats)
{
    struct cu_array bc1 = {64, 64, CU_AD_FORMAT_BC1_UNORM, 4};
    cr_expect_eq(cu_array_bytes(&bc1), 64 * 64 / 2);
    struct cu_array nv12 = {64, 64, CU_AD_FORMAT_NV12, 3};
    cr_expect_eq(cu_array_bytes(&nv12), 64 * 64 * 3 / 2);
}

Test(cuda_abi, mipmap_levels_halve_but_layers_do_not)
{
    struct cu_array3d box = {8, 8, 8, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0};
    cr_expect_eq(cu_array3d_bytes(&box, 4), 512 + 64 + 8 + 1);
    box.flags = CUDA_ARRAY3D_LAYERED;
    cr_expect_eq(cu_array3d_bytes(&box, 4), 512 + 128 + 32 + 8);
    struct cuda_channel channel = {{8, 8, 0, 0}, 0};
    cr_expect_eq(cuda_array_bytes(&channel, 10, 3, 0, 1, 0), 60);
}

Test(cuda_abi, the_hash_of_an_ipc_handle_is_fnv_1a)
{
    struct cu_ipc_handle handle = {{0}};
    /* 64 zero bytes: the offset basis times the prime, 64 times. */
    uint64_t expected = 0xcbf29ce484222325ULL;
    for (int i = 0; i < 64; i++) {
        expected *= 0x100000001b3ULL;
    }
    cr_expect_eq(cu_ipc_hash(&handle), expected);
    handle.bytes[63] = 1;
    cr_expect_neq(cu_ipc_hash(&handle), expected);
    cr_expect_eq(cu_ipc_hash(NULL), 0);
}

Test(cuda_abi, null_pointers_read_as_nothing)
{
    cr_expect_eq(cu_memory_device(NULL), VS_DEVICE_UNKNOWN);
    cr_expect_eq(cu_pool_device(NULL), VS_DEVICE_UNKNOWN);
    cr_expect_eq(cu_pool_value(4, NULL), 0);
    cr_expect_eq(cu_node_kind(NULL), VS_KIND_OTHER_CALL);
    cr_expect_eq(cu_node_address(NULL), 0);
    cr_expect_eq(cu_access_device(NULL, 3), 0);
}

Test(cuda_abi, pool_attributes_have_two_widths)
{
    int narrow[2] = {7, -1};
    uint64_t wide = 1ULL << 40;
    cr_expect_eq(cu_pool_value(1, narrow), 7);
    cr_expect_eq(cu_pool_value(ABI_POOL_RELEASE_THRESHOLD, &wide), wide);
}
