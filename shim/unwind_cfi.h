/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an unwind table says at one address, and what follows from it: the
 * machine of DWARF 5, §6.4, with the GNU additions, for x86-64 registers.
 */
#ifndef VS_SHIM_UNWIND_CFI_H
#define VS_SHIM_UNWIND_CFI_H

#include <stdbool.h>
#include <stdint.h>

#include "unwind_memory.h"
#include "unwind_tables.h"

/* Registers as the tables number them; 16 is the return address. */
enum { UNWIND_RBX = 3, UNWIND_RBP = 6, UNWIND_RSP = 7, UNWIND_RIP = 16, UNWIND_REGISTERS = 17 };

struct unwind_registers {
    uint64_t value[UNWIND_REGISTERS];
    uint32_t known; /* a bit for each whose value is the frame's */
};

enum unwind_where {
    UNWIND_UNSPECIFIED,
    UNWIND_UNDEFINED,
    UNWIND_SAME,
    UNWIND_AT_OFFSET, /* in memory, at the frame's address + operand */
    UNWIND_OFFSET,    /* the frame's address + operand */
    UNWIND_REGISTER,  /* in the register `operand` */
    UNWIND_AT_RESULT, /* in memory, where the expression says */
    UNWIND_RESULT     /* the expression's result */
};

/* An expression's operand is its place in the entry's segment: length, then operations. */
struct unwind_row {
    uint8_t where[UNWIND_REGISTERS];
    bool frame_is_result; /* the frame's address is an expression's, at frame_operand */
    uint8_t frame_register;
    int32_t frame_operand;
    int32_t operand[UNWIND_REGISTERS];
};

/* The row for `address`: 0, or -EINVAL when the instructions make no sense. */
int unwind_row_at(const struct unwind_entry *entry, uint64_t address, struct unwind_row *row);

/*
 * From a frame's registers to those of the frame before it. -EINVAL: makes no
 * sense or cannot be read; -ENODATA: needs a register that is not known.
 */
int unwind_row_apply(const struct unwind_entry *entry, const struct unwind_row *row,
                     struct unwind_registers *registers, struct unwind_stack *stack);

/* ---- unwind_expression.c ----------------------------------------------------------- */

struct unwind_expression_input {
    const struct unwind_registers *registers;
    struct unwind_stack *stack;
    bool has_frame; /* the frame's address is known: the stack begins with it */
    uint64_t frame;
};

/* The expression at `block` (its length first). Errors as for unwind_row_apply. */
int unwind_expression(struct unwind_bytes block, const struct unwind_expression_input *input,
                      uint64_t *result);

#endif
