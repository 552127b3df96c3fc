/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the instructions of an unwind entry up to an address, and applies the row
 * that they leave behind. A table may be corrupt: operands that do not fit a row
 * make the row unusable, never the program.
 */
#include "unwind_cfi.h"

#include <errno.h>
#include <stddef.h>

#define REMEMBERED_MAX 8U
#define RETURN_ADDRESS_MAX (1ULL << 63) /* frames above have other meanings (frame_word.h) */

/* The registers that a called function hands back as it found them. */
#define PRESERVED (1U << UNWIND_RBX | 1U << UNWIND_RBP | 1U << 12 | 1U << 13 | 1U << 14 | 1U << 15)

/* Two bits of operation with six of operand, or six of operation. */
enum { HIGH_ADVANCE = 0x40, HIGH_OFFSET = 0x80, HIGH_RESTORE = 0xc0 };
enum {
    CFA_NOP = 0x00,
    CFA_SET_LOC = 0x01,
    CFA_ADVANCE_1 = 0x02,
    CFA_ADVANCE_2 = 0x03,
    CFA_ADVANCE_4 = 0x04,
    CFA_OFFSET_EXTENDED = 0x05,
    CFA_RESTORE_EXTENDED = 0x06,
    CFA_UNDEFINED = 0x07,
    CFA_SAME_VALUE = 0x08,
    CFA_REGISTER = 0x09,
    CFA_REMEMBER_STATE = 0x0a,
    CFA_RESTORE_STATE = 0x0b,
    CFA_DEF_CFA = 0x0c,
    CFA_DEF_CFA_REGISTER = 0x0d,
    CFA_DEF_CFA_OFFSET = 0x0e,
    CFA_DEF_CFA_EXPRESSION = 0x0f,
    CFA_EXPRESSION = 0x10,
    CFA_OFFSET_EXTENDED_SF = 0x11,
    CFA_DEF_CFA_SF = 0x12,
    CFA_DEF_CFA_OFFSET_SF = 0x13,
    CFA_VAL_OFFSET = 0x14,
    CFA_VAL_OFFSET_SF = 0x15,
    CFA_VAL_EXPRESSION = 0x16,
    CFA_GNU_WINDOW_SAVE = 0x2d,
    CFA_GNU_ARGS_SIZE = 0x2e,
    CFA_GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f
};

struct machine {
    const struct unwind_entry *entry;
    struct unwind_bytes code;
    struct unwind_row *row;
    uint64_t location;
    unsigned remembered;
    bool initial_known;
    struct unwind_row initial; /* after the common part: what "restore" goes back to */
    struct unwind_row memory[REMEMBERED_MAX];
};

/* ---- one instruction at a time ----------------------------------------------------- */

static int32_t fit(struct machine *machine, int64_t value)
{
    if (value != (int32_t)value) {
        machine->code.bad = true;
    }
    return (int32_t)value;
}

/* Wraps where a corrupt table makes it: fit() then refuses it, or the address is not readable. */
static int64_t scaled(const struct machine *machine, uint64_t factor)
{
    return (int64_t)(factor * (uint64_t)machine->entry->data_alignment);
}

static void set(struct machine *machine, uint64_t number, enum unwind_where where, int64_t operand)
{
    int32_t kept = fit(machine, operand);
    if (number < UNWIND_REGISTERS) {
        machine->row->where[number] = (uint8_t)where;
        machine->row->operand[number] = kept;
    }
}

static void restore(struct machine *machine, uint64_t number)
{
    if (!machine->initial_known) {
        machine->code.bad = true;
    } else if (number < UNWIND_REGISTERS) {
        machine->row->where[number] = machine->initial.where[number];
        machine->row->operand[number] = machine->initial.operand[number];
    }
}

static void set_frame_register(struct machine *machine, uint64_t number)
{
    machine->row->frame_is_result = false;
    machine->row->frame_register = number < UNWIND_RIP ? (uint8_t)number : UNWIND_RIP;
    machine->code.bad |= number >= UNWIND_RIP;
}

static void set_frame_offset(struct machine *machine, int64_t offset)
{
    machine->code.bad |= machine->row->frame_is_result;
    machine->row->frame_operand = fit(machine, offset);
}

/* Where the block in front lies in the segment; goes past it. */
static int64_t take_block(struct machine *machine)
{
    int64_t place = machine->code.at - machine->entry->segment;
    unwind_skip(&machine->code, unwind_take_uleb(&machine->code));
    return place;
}

static void advance(struct machine *machine, uint64_t factor)
{
    machine->location += factor * machine->entry->code_alignment;
}

static void remember_state(struct machine *machine)
{
    if (machine->remembered == REMEMBERED_MAX) {
        machine->code.bad = true;
        return;
    }
    machine->memory[machine->remembered++] = *machine->row;
}

static void restore_state(struct machine *machine)
{
    if (machine->remembered == 0) {
        machine->code.bad = true;
        return;
    }
    *machine->row = machine->memory[--machine->remembered];
}

static void define_frame(struct machine *machine, uint8_t operation)
{
    struct unwind_bytes *code = &machine->code;
    switch (operation) {
    case CFA_DEF_CFA:
        set_frame_register(machine, unwind_take_uleb(code));
        set_frame_offset(machine, (int64_t)unwind_take_uleb(code));
        break;
    case CFA_DEF_CFA_SF:
        set_frame_register(machine, unwind_take_uleb(code));
        set_frame_offset(machine, scaled(machine, (uint64_t)unwind_take_sleb(code)));
        break;
    case CFA_DEF_CFA_REGISTER:
        code->bad |= machine->row->frame_is_result;
        set_frame_register(machine, unwind_take_uleb(code));
        break;
    case CFA_DEF_CFA_OFFSET:
        set_frame_offset(machine, (int64_t)unwind_take_uleb(code));
        break;
    case CFA_DEF_CFA_OFFSET_SF:
        set_frame_offset(machine, scaled(machine, (uint64_t)unwind_take_sleb(code)));
        break;
    default: /* CFA_DEF_CFA_EXPRESSION */
        machine->row->frame_is_result = true;
        machine->row->frame_operand = fit(machine, take_block(machine));
        break;
    }
}

/* Instructions that say where one register is. */
static void define_register(struct machine *machine, uint8_t operation)
{
    struct unwind_bytes *code = &machine->code;
    uint64_t number = unwind_take_uleb(code);
    switch (operation) {
    case CFA_OFFSET_EXTENDED:
        set(machine, number, UNWIND_AT_OFFSET, scaled(machine, unwind_take_uleb(code)));
        break;
    case CFA_OFFSET_EXTENDED_SF:
        set(machine, number, UNWIND_AT_OFFSET, scaled(machine, (uint64_t)unwind_take_sleb(code)));
        break;
    case CFA_GNU_NEGATIVE_OFFSET_EXTENDED:
        set(machine, number, UNWIND_AT_OFFSET, scaled(machine, 0 - unwind_take_uleb(code)));
        break;
    case CFA_VAL_OFFSET:
        set(machine, number, UNWIND_OFFSET, scaled(machine, unwind_take_uleb(code)));
        break;
    case CFA_VAL_OFFSET_SF:
        set(machine, number, UNWIND_OFFSET, scaled(machine, (uint64_t)unwind_take_sleb(code)));
        break;
    case CFA_REGISTER:
        set(machine, number, UNWIND_REGISTER, (int64_t)unwind_take_uleb(code));
        break;
    case CFA_EXPRESSION:
        set(machine, number, UNWIND_AT_RESULT, take_block(machine));
        break;
    case CFA_VAL_EXPRESSION:
        set(machine, number, UNWIND_RESULT, take_block(machine));
        break;
    case CFA_UNDEFINED:
        set(machine, number, UNWIND_UNDEFINED, 0);
        break;
    case CFA_SAME_VALUE:
        set(machine, number, UNWIND_SAME, 0);
        break;
    default: /* CFA_RESTORE_EXTENDED */
        restore(machine, number);
        break;
    }
}

static void run_low(struct machine *machine, uint8_t operation)
{
    struct unwind_bytes *code = &machine->code;
    switch (operation) {
    case CFA_NOP:
    case CFA_GNU_WINDOW_SAVE:
        break;
    case CFA_GNU_ARGS_SIZE:
        (void)unwind_take_uleb(code);
        break;
    case CFA_SET_LOC:
        machine->location = unwind_take_encoded(code, machine->entry->encoding, 0);
        break;
    case CFA_ADVANCE_1:
        advance(machine, unwind_take(code, 1));
        break;
    case CFA_ADVANCE_2:
        advance(machine, unwind_take(code, 2));
        break;
    case CFA_ADVANCE_4:
        advance(machine, unwind_take(code, 4));
        break;
    case CFA_REMEMBER_STATE:
        remember_state(machine);
        break;
    case CFA_RESTORE_STATE:
        restore_state(machine);
        break;
    case CFA_DEF_CFA:
    case CFA_DEF_CFA_SF:
    case CFA_DEF_CFA_REGISTER:
    case CFA_DEF_CFA_OFFSET:
    case CFA_DEF_CFA_OFFSET_SF:
    case CFA_DEF_CFA_EXPRESSION:
        define_frame(machine, operation);
        break;
    case CFA_OFFSET_EXTENDED:
    case CFA_OFFSET_EXTENDED_SF:
    case CFA_GNU_NEGATIVE_OFFSET_EXTENDED:
    case CFA_VAL_OFFSET:
    case CFA_VAL_OFFSET_SF:
    case CFA_REGISTER:
    case CFA_EXPRESSION:
    case CFA_VAL_EXPRESSION:
    case CFA_UNDEFINED:
    case CFA_SAME_VALUE:
    case CFA_RESTORE_EXTENDED:
        define_register(machine, operation);
        break;
    default:
        code->bad = true;
        break;
    }
}

/* Runs `code` as long as it speaks of addresses up to `address`. */
static bool run(struct machine *machine, struct unwind_bytes code, uint64_t address)
{
    machine->code = code;
    while (machine->code.at < machine->code.end && !machine->code.bad &&
           machine->location <= address) {
        uint8_t operation = (uint8_t)unwind_take(&machine->code, 1);
        uint64_t low = operation & 0x3fU;
        switch (operation & 0xc0U) {
        case HIGH_ADVANCE:
            advance(machine, low);
            break;
        case HIGH_OFFSET:
            set(machine, low, UNWIND_AT_OFFSET, scaled(machine, unwind_take_uleb(&machine->code)));
            break;
        case HIGH_RESTORE:
            restore(machine, low);
            break;
        default:
            run_low(machine, operation);
            break;
        }
    }
    return !machine->code.bad;
}

int unwind_row_at(const struct unwind_entry *entry, uint64_t address, struct unwind_row *row)
{
    struct machine machine;
    machine.entry = entry;
    machine.row = row;
    machine.location = entry->first;
    machine.remembered = 0;
    machine.initial_known = false;
    memset(row, 0, sizeof(*row));
    row->frame_register = UNWIND_RIP; /* none yet */
    if (!run(&machine, entry->common, UINT64_MAX)) {
        return -EINVAL;
    }
    machine.initial = *row;
    machine.initial_known = true;
    machine.location = entry->first;
    bool sensible = run(&machine, entry->own, address);
    return sensible && (row->frame_is_result || row->frame_register < UNWIND_RIP) ? 0 : -EINVAL;
}

/* ---- from one frame to the one before ---------------------------------------------- */

static bool is_known(const struct unwind_registers *registers, unsigned number)
{
    return number < UNWIND_REGISTERS && (registers->known & 1U << number) != 0;
}

static int evaluate(const struct unwind_entry *entry, int32_t place,
                    const struct unwind_expression_input *input, uint64_t *result)
{
    struct unwind_bytes block = {.at = entry->segment + place, .end = entry->segment_end};
    return unwind_expression(block, input, result);
}

static int find_frame(const struct unwind_entry *entry, const struct unwind_row *row,
                      const struct unwind_registers *registers, struct unwind_stack *stack,
                      uint64_t *frame)
{
    if (row->frame_is_result) {
        const struct unwind_expression_input input = {.registers = registers, .stack = stack};
        return evaluate(entry, row->frame_operand, &input, frame);
    }
    if (!is_known(registers, row->frame_register)) {
        return -ENODATA;
    }
    *frame = registers->value[row->frame_register] + (uint64_t)(int64_t)row->frame_operand;
    return 0;
}

/* One register's value in the frame before. */
static int find_register(const struct unwind_entry *entry, const struct unwind_row *row,
                         unsigned number, const struct unwind_expression_input *input,
                         uint64_t *value)
{
    int32_t operand = row->operand[number];
    uint64_t address = input->frame + (uint64_t)(int64_t)operand;
    unsigned from = number;
    int error = 0;
    switch ((enum unwind_where)row->where[number]) {
    case UNWIND_AT_OFFSET:
        return unwind_read(input->stack, address, value) ? 0 : -EINVAL;
    case UNWIND_OFFSET:
        *value = address;
        return 0;
    case UNWIND_AT_RESULT:
        error = evaluate(entry, operand, input, &address);
        return error != 0 ? error : unwind_read(input->stack, address, value) ? 0 : -EINVAL;
    case UNWIND_RESULT:
        return evaluate(entry, operand, input, value);
    case UNWIND_UNSPECIFIED:
        if (number == UNWIND_RSP) {
            *value = input->frame;
            return 0;
        }
        if ((PRESERVED & 1U << number) == 0) {
            return -ENODATA;
        }
        break;
    case UNWIND_REGISTER:
        from = operand >= 0 && operand < UNWIND_REGISTERS ? (unsigned)operand : UNWIND_REGISTERS;
        break;
    case UNWIND_SAME:
        break;
    default:
        return -ENODATA;
    }
    if (!is_known(input->registers, from)) {
        return -ENODATA;
    }
    *value = input->registers->value[from];
    return 0;
}

int unwind_row_apply(const struct unwind_entry *entry, const struct unwind_row *row,
                     struct unwind_registers *registers, struct unwind_stack *stack)
{
    struct unwind_registers before = {.known = 0};
    struct unwind_expression_input input = {
        .registers = registers, .stack = stack, .has_frame = true};
    int error = find_frame(entry, row, registers, stack, &input.frame);
    if (error != 0) {
        return error;
    }
    for (unsigned i = 0; i < UNWIND_REGISTERS; i++) {
        error = find_register(entry, row, i, &input, &before.value[i]);
        if (error == 0) {
            before.known |= 1U << i;
        } else if (i == UNWIND_RSP || i == UNWIND_RIP) {
            return error;
        } /* else not known: compilers forget to say that an epilogue restored a register */
    }
    if (entry->return_register != UNWIND_RIP) {
        if (entry->return_register > UNWIND_RIP ||
            !is_known(&before, (unsigned)entry->return_register)) {
            return -EINVAL;
        }
        before.value[UNWIND_RIP] = before.value[entry->return_register];
    }
    if (before.value[UNWIND_RIP] >= RETURN_ADDRESS_MAX) {
        return -EINVAL;
    }
    *registers = before;
    return 0;
}
