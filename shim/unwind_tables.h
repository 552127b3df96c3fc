/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The unwind tables of an object: from an address to the instructions that say
 * how its function's frame is laid out (.eh_frame_hdr and .eh_frame as in the
 * Linux Standard Base, Core, "Exception Frames"). Reads nothing outside the
 * segments that it is given, whatever the tables say.
 */
#ifndef VS_SHIM_UNWIND_TABLES_H
#define VS_SHIM_UNWIND_TABLES_H

#include <stdbool.h>
#include <stdint.h>

#include "stacks.h"
#include "unwind_bytes.h"

/* One function (or part of one): its entry and the common part it names. */
struct unwind_entry {
    uint64_t first, last;       /* addresses it speaks of: from first, up to before last */
    struct unwind_bytes common; /* instructions that begin every function of the common part */
    struct unwind_bytes own;    /* those of this function */
    const uint8_t *segment;     /* where the tables lie */
    const uint8_t *segment_end;
    uint64_t code_alignment;
    int64_t data_alignment;
    uint64_t return_register;
    uint8_t encoding; /* of addresses in the instructions */
    bool signal;      /* the frame of a signal: the one before it was interrupted, not calling */
};

/* The entry for `address`: 0, or -ENOENT. */
int unwind_tables_find(const struct modules_tables *tables, uint64_t address,
                       struct unwind_entry *entry);
/*
 * A number of the given encoding (DW_EH_PE_*). Addresses relative to data are
 * relative to `data`. Marks the reader for encodings that have no place there.
 */
uint64_t unwind_take_encoded(struct unwind_bytes *bytes, uint8_t encoding, uint64_t data);

#endif
