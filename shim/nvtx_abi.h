/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of NVTX's binary interface that a tool meets: what the header
 * (nvtx3/nvToolsExt.h, version 3; version 2's library has the same) hands to
 * InitializeInjectionNvtx2, and the numbers of the functions that ranges and
 * marks are made with. Source: NVTX's nvtxDetail/nvtxTypes.h and nvToolsExt.h.
 */
#ifndef VS_SHIM_NVTX_ABI_H
#define VS_SHIM_NVTX_ABI_H

#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

enum { NVTX_TABLE_CALLBACKS = 1 };
enum { NVTX_MODULE_CORE = 1, NVTX_MODULE_CORE2 = 5 };

/* Indices into a module's table. */
enum {
    NVTX_CORE_MARK_EX = 1,
    NVTX_CORE_MARK_A = 2,
    NVTX_CORE_MARK_W = 3,
    NVTX_CORE_RANGE_START_EX = 4,
    NVTX_CORE_RANGE_START_A = 5,
    NVTX_CORE_RANGE_START_W = 6,
    NVTX_CORE_RANGE_END = 7,
    NVTX_CORE_RANGE_PUSH_EX = 8,
    NVTX_CORE_RANGE_PUSH_A = 9,
    NVTX_CORE_RANGE_PUSH_W = 10,
    NVTX_CORE_RANGE_POP = 11
};
enum {
    NVTX_CORE2_MARK_EX = 1,
    NVTX_CORE2_RANGE_START_EX = 2,
    NVTX_CORE2_RANGE_END = 3,
    NVTX_CORE2_RANGE_PUSH_EX = 4,
    NVTX_CORE2_RANGE_POP = 5,
    NVTX_CORE2_REGISTER_STRING_A = 10,
    NVTX_CORE2_REGISTER_STRING_W = 11,
    NVTX_CORE2_DOMAIN_CREATE_A = 12,
    NVTX_CORE2_DOMAIN_CREATE_W = 13
};

/* What push and pop return besides a level. */
enum { NVTX_LEVEL_ERROR = -1, NVTX_LEVEL_NOT_TRACKED = -2 };

typedef void nvtx_function(void);

struct nvtx_callbacks {
    size_t struct_bytes;
    /* 1 when there is such a module: `table` has pointers to its functions, up to index `last`. */
    int (*module_table)(int module, nvtx_function ***table, unsigned *last);
};

typedef const void *nvtx_export_table(uint32_t which);

enum { NVTX_MESSAGE_ASCII = 1, NVTX_MESSAGE_UNICODE = 2, NVTX_MESSAGE_REGISTERED = 3 };

struct nvtx_attributes {
    uint16_t version;
    uint16_t struct_bytes;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type;
    int32_t reserved;
    uint64_t payload;
    int32_t message_type;
    union {
        const char *ascii;
        const wchar_t *unicode;
        const void *registered;
    } message;
};
_Static_assert(sizeof(struct nvtx_attributes) == 48, "as in nvToolsExt.h");

#endif
