/* SPDX-License-Identifier: Apache-2.0 */
/* struct vs_event as an LTTng-UST tracepoint: the same bytes, as fields. Read several times. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER vramscope_bench
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "lttng_event.h"

#if !defined(VS_TESTS_BENCH_LTTNG_EVENT_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define VS_TESTS_BENCH_LTTNG_EVENT_H

#include <lttng/tracepoint.h>

#include "../../formats/record.h"

/* clang-format off */
LTTNG_UST_TRACEPOINT_EVENT(vramscope_bench, event,
    LTTNG_UST_TP_ARGS(const struct vs_event *, e),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer_hex(uint64_t, address, e->address)
        lttng_ust_field_integer(uint64_t, size, e->size)
        lttng_ust_field_integer_hex(uint64_t, stream, e->stream)
        lttng_ust_field_integer_hex(uint64_t, context, e->context)
        lttng_ust_field_integer_hex(uint64_t, pool, e->pool)
        lttng_ust_field_integer_hex(uint64_t, handle, e->handle)
        lttng_ust_field_integer(uint64_t, extra0, e->extra[0])
        lttng_ust_field_integer(uint64_t, extra1, e->extra[1])
        lttng_ust_field_integer(uint64_t, free_bytes, e->free_bytes)
        lttng_ust_field_integer(uint32_t, duration_ns, e->duration_ns)
        lttng_ust_field_integer(int32_t, result, e->result)
        lttng_ust_field_integer(uint32_t, module, e->module)
        lttng_ust_field_integer(uint32_t, stack, e->stack)
        lttng_ust_field_integer(uint16_t, call, e->call)
        lttng_ust_field_integer(uint16_t, label, e->label)
        lttng_ust_field_integer(uint8_t, kind, e->kind)
        lttng_ust_field_integer(int8_t, device, e->device)
        lttng_ust_field_integer(uint16_t, flags, e->flags)
    )
)
/* clang-format on */

#endif

#include <lttng/tracepoint-event.h>
