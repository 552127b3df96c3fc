/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for and writing of values in memory, in stream order. */
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "stream.h"

struct value_op {
    uint64_t address;
    uint64_t value;
    unsigned flags;
    bool is_wide;
};

static uint64_t load(const struct value_op *op)
{
    if (op->is_wide)
        return __atomic_load_n((uint64_t *)(uintptr_t)op->address, __ATOMIC_ACQUIRE);
    return __atomic_load_n((uint32_t *)(uintptr_t)op->address, __ATOMIC_ACQUIRE);
}

static bool is_reached(void *argument)
{
    const struct value_op *op = argument;
    uint64_t now = load(op);
    switch (op->flags & 3U) {
    case CU_STREAM_WAIT_VALUE_GEQ:
        return op->is_wide ? (int64_t)(now - op->value) >= 0
                           : (int32_t)((uint32_t)now - (uint32_t)op->value) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
        return now == op->value;
    case CU_STREAM_WAIT_VALUE_AND:
        return (now & op->value) != 0;
    default:
        return ~(now | op->value) & (op->is_wide ? UINT64_MAX : UINT32_MAX);
    }
}

static void write_value(void *argument)
{
    struct value_op *op = argument;
    if (op->is_wide)
        __atomic_store_n((uint64_t *)(uintptr_t)op->address, op->value, __ATOMIC_RELEASE);
    else
        __atomic_store_n((uint32_t *)(uintptr_t)op->address, (uint32_t)op->value, __ATOMIC_RELEASE);
    free(op);
}

static CUresult submit(struct sim_stream *stream, struct value_op op, bool waits)
{
    uint64_t size = op.is_wide ? 8 : 4;
    if (op.address % size || !sim_range_valid(stream->context, op.address, size, false))
        return CUDA_ERROR_INVALID_VALUE;
    if (waits && sim_stream_idle(stream) && is_reached(&op))
        return CUDA_SUCCESS;
    struct value_op *copy = malloc(sizeof *copy);
    if (!copy)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *copy = op;
    CUresult result = waits ? sim_submit_when(stream, is_reached, copy)
                            : sim_submit(stream, SIM_OP_DEVICE, write_value, copy);
    if (result != CUDA_SUCCESS)
        free(copy);
    return result;
}

static CUresult one(CUstream handle, struct value_op op, bool waits)
{
    unsigned known =
        waits ? 3U | CU_STREAM_WAIT_VALUE_FLUSH : (unsigned)CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER;
    if (op.flags & ~known)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result;
    struct sim_stream *stream = sim_stream_of(handle, &result);
    if (!stream)
        return sim_leave(result);
    if (stream->capture)
        return sim_leave(CUDA_ERROR_NOT_SUPPORTED);
    return sim_leave(submit(stream, op, waits));
}

#define VALUE_OP(name, call, c_type, wide, waits)                                              \
    SIM_STREAMED(name, (CUstream hStream, CUdeviceptr addr, c_type value, unsigned int flags), \
                 (hStream, addr, value, flags))                                                \
    {                                                                                          \
        SIM_ENTER(call, 0);                                                                    \
        return one(hStream, (struct value_op){addr, value, flags, wide}, waits);               \
    }

VALUE_OP(cuStreamWaitValue32_v2, cuStreamWaitValue32, cuuint32_t, false, true)
VALUE_OP(cuStreamWaitValue64_v2, cuStreamWaitValue64, cuuint64_t, true, true)
VALUE_OP(cuStreamWriteValue32_v2, cuStreamWriteValue32, cuuint32_t, false, false)
VALUE_OP(cuStreamWriteValue64_v2, cuStreamWriteValue64, cuuint64_t, true, false)
VALUE_OP(cuStreamWaitValue32, cuStreamWaitValue32, cuuint32_t, false, true)
VALUE_OP(cuStreamWaitValue64, cuStreamWaitValue64, cuuint64_t, true, true)
VALUE_OP(cuStreamWriteValue32, cuStreamWriteValue32, cuuint32_t, false, false)
VALUE_OP(cuStreamWriteValue64, cuStreamWriteValue64, cuuint64_t, true, false)

static CUresult batch_item(struct sim_stream *stream, const CUstreamBatchMemOpParams *item)
{
    switch (item->operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    case CU_STREAM_MEM_OP_WAIT_VALUE_64: {
        bool wide = item->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
        uint64_t value = wide ? item->waitValue.value64 : item->waitValue.value;
        return submit(
            stream, (struct value_op){item->waitValue.address, value, item->waitValue.flags, wide},
            true);
    }
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
    case CU_STREAM_MEM_OP_WRITE_VALUE_64: {
        bool wide = item->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
        uint64_t value = wide ? item->writeValue.value64 : item->writeValue.value;
        return submit(stream, (struct value_op){item->writeValue.address, value, 0, wide}, false);
    }
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
    case CU_STREAM_MEM_OP_BARRIER:
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult batch(CUstream handle, unsigned count, const CUstreamBatchMemOpParams *items,
                      unsigned flags)
{
    if (!items || !count || count > 256 || flags)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    CUresult result;
    struct sim_stream *stream = sim_stream_of(handle, &result);
    if (stream && stream->capture)
        result = CUDA_ERROR_NOT_SUPPORTED;
    for (unsigned i = 0; result == CUDA_SUCCESS && i < count; i++)
        result = batch_item(stream, &items[i]);
    return sim_leave(result);
}

SIM_STREAMED(cuStreamBatchMemOp_v2,
             (CUstream hStream, unsigned int count, CUstreamBatchMemOpParams *paramArray,
              unsigned int flags),
             (hStream, count, paramArray, flags))
{
    SIM_ENTER(cuStreamBatchMemOp, 0);
    return batch(hStream, count, paramArray, flags);
}

SIM_STREAMED(cuStreamBatchMemOp,
             (CUstream hStream, unsigned int count, CUstreamBatchMemOpParams *paramArray,
              unsigned int flags),
             (hStream, count, paramArray, flags))
{
    SIM_ENTER(cuStreamBatchMemOp, 0);
    return batch(hStream, count, paramArray, flags);
}
