/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DWARF expressions (DWARF 5, §2.5) as unwind tables use them: on a stack of a
 * few words, for a bounded number of operations, with every read checked.
 */
#include <errno.h>

#include "unwind_cfi.h"

#define STACK_WORDS 32U
#define OPERATIONS_MAX 512U

enum {
    OP_ADDR = 0x03,
    OP_DEREF = 0x06,
    OP_CONST1U = 0x08,
    OP_CONST1S,
    OP_CONST2U,
    OP_CONST2S,
    OP_CONST4U,
    OP_CONST4S,
    OP_CONST8U,
    OP_CONST8S,
    OP_CONSTU,
    OP_CONSTS,
    OP_DUP,
    OP_DROP,
    OP_OVER,
    OP_PICK,
    OP_SWAP,
    OP_ROT,
    OP_ABS = 0x19,
    OP_AND,
    OP_DIV,
    OP_MINUS,
    OP_MOD,
    OP_MUL,
    OP_NEG,
    OP_NOT,
    OP_OR,
    OP_PLUS,
    OP_PLUS_UCONST,
    OP_SHL,
    OP_SHR,
    OP_SHRA,
    OP_XOR,
    OP_BRA,
    OP_EQ,
    OP_GE,
    OP_GT,
    OP_LE,
    OP_LT,
    OP_NE,
    OP_SKIP,
    OP_LIT0,
    OP_LIT31 = OP_LIT0 + 31,
    OP_REG0,
    OP_REG31 = OP_REG0 + 31,
    OP_BREG0,
    OP_BREG31 = OP_BREG0 + 31,
    OP_REGX,
    OP_BREGX = 0x92,
    OP_DEREF_SIZE = 0x94,
    OP_NOP = 0x96,
    OP_CALL_FRAME_CFA = 0x9c
};

struct evaluation {
    struct unwind_bytes code;
    const uint8_t *begin;
    const struct unwind_expression_input *input;
    int error;
    unsigned depth;
    uint64_t word[STACK_WORDS];
};

static void fail(struct evaluation *at, int error)
{
    if (at->error == 0) {
        at->error = error;
    }
}

static void push(struct evaluation *at, uint64_t value)
{
    if (at->depth == STACK_WORDS) {
        fail(at, -EINVAL);
        return;
    }
    at->word[at->depth++] = value;
}

static uint64_t pop(struct evaluation *at)
{
    if (at->depth == 0) {
        fail(at, -EINVAL);
        return 0;
    }
    return at->word[--at->depth];
}

/* The word `from` places below the top. */
static void pick(struct evaluation *at, uint64_t from)
{
    if (from >= at->depth) {
        fail(at, -EINVAL);
        return;
    }
    push(at, at->word[at->depth - 1 - from]);
}

static void push_register(struct evaluation *at, uint64_t number, int64_t offset)
{
    const struct unwind_registers *registers = at->input->registers;
    if (number >= UNWIND_REGISTERS || (registers->known & 1U << number) == 0) {
        fail(at, -ENODATA);
        return;
    }
    push(at, registers->value[number] + (uint64_t)offset);
}

static void dereference(struct evaluation *at, uint64_t bytes)
{
    uint64_t address = pop(at);
    uint64_t value = 0;
    if (at->error != 0 || bytes == 0 || bytes > 8 ||
        !unwind_read(at->input->stack, address, &value)) {
        fail(at, -EINVAL);
        return;
    }
    push(at, bytes == 8 ? value : value & ((1ULL << 8 * bytes) - 1));
}

static void jump(struct evaluation *at, int64_t distance)
{
    if (distance < at->begin - at->code.at || distance > at->code.end - at->code.at) {
        fail(at, -EINVAL);
        return;
    }
    at->code.at += distance;
}

static void rotate(struct evaluation *at)
{
    uint64_t first = pop(at);
    uint64_t second = pop(at);
    uint64_t third = pop(at);
    push(at, first);
    push(at, third);
    push(at, second);
}

static void swap(struct evaluation *at)
{
    uint64_t first = pop(at);
    uint64_t second = pop(at);
    push(at, first);
    push(at, second);
}

static uint64_t divide(struct evaluation *at, int64_t dividend, int64_t divisor)
{
    if (divisor == 0) {
        fail(at, -EINVAL);
        return 0;
    }
    return divisor == -1 ? 0 - (uint64_t)dividend : (uint64_t)(dividend / divisor);
}

static uint64_t modulo(struct evaluation *at, uint64_t dividend, uint64_t divisor)
{
    if (divisor == 0) {
        fail(at, -EINVAL);
        return 0;
    }
    return dividend % divisor;
}

/* `right` was on top. */
static uint64_t combine(struct evaluation *at, uint8_t operation, uint64_t left, uint64_t right)
{
    int64_t signed_left = (int64_t)left;
    int64_t signed_right = (int64_t)right;
    switch (operation) {
    case OP_AND:
        return left & right;
    case OP_DIV:
        return divide(at, signed_left, signed_right);
    case OP_MINUS:
        return left - right;
    case OP_MOD:
        return modulo(at, left, right);
    case OP_MUL:
        return left * right;
    case OP_OR:
        return left | right;
    case OP_PLUS:
        return left + right;
    case OP_SHL:
        return right < 64 ? left << right : 0;
    case OP_SHR:
        return right < 64 ? left >> right : 0;
    case OP_SHRA:
        return (uint64_t)(signed_left >> (right < 64 ? right : 63));
    case OP_XOR:
        return left ^ right;
    case OP_EQ:
        return signed_left == signed_right;
    case OP_GE:
        return signed_left >= signed_right;
    case OP_GT:
        return signed_left > signed_right;
    case OP_LE:
        return signed_left <= signed_right;
    case OP_LT:
        return signed_left < signed_right;
    default: /* OP_NE */
        return signed_left != signed_right;
    }
}

static bool is_binary(uint8_t operation)
{
    return operation == OP_AND || (operation >= OP_DIV && operation <= OP_MUL) ||
           operation == OP_OR || operation == OP_PLUS ||
           (operation >= OP_SHL && operation <= OP_XOR) ||
           (operation >= OP_EQ && operation <= OP_NE);
}

/* Operations that only bring a word. False: it is none of these. */
static bool run_constant(struct evaluation *at, uint8_t operation)
{
    struct unwind_bytes *code = &at->code;
    if (operation >= OP_LIT0 && operation <= OP_LIT31) {
        push(at, (uint64_t)(operation - OP_LIT0));
        return true;
    }
    if (operation >= OP_CONST1U && operation <= OP_CONST8S) {
        unsigned bytes = 1U << (operation - OP_CONST1U) / 2;
        bool is_signed = (operation - OP_CONST1U) % 2 != 0;
        push(at, is_signed ? (uint64_t)unwind_take_signed(code, bytes) : unwind_take(code, bytes));
        return true;
    }
    switch (operation) {
    case OP_ADDR:
        push(at, unwind_take(code, 8));
        return true;
    case OP_CONSTU:
        push(at, unwind_take_uleb(code));
        return true;
    case OP_CONSTS:
        push(at, (uint64_t)unwind_take_sleb(code));
        return true;
    case OP_CALL_FRAME_CFA:
        push(at, at->input->frame);
        fail(at, at->input->has_frame ? 0 : -EINVAL);
        return true;
    default:
        return false;
    }
}

/* Operations that bring a register's word. */
static bool run_register(struct evaluation *at, uint8_t operation)
{
    if (operation >= OP_REG0 && operation <= OP_REG31) {
        push_register(at, (uint64_t)(operation - OP_REG0), 0);
    } else if (operation >= OP_BREG0 && operation <= OP_BREG31) {
        push_register(at, (uint64_t)(operation - OP_BREG0), unwind_take_sleb(&at->code));
    } else if (operation == OP_REGX) {
        push_register(at, unwind_take_uleb(&at->code), 0);
    } else if (operation == OP_BREGX) {
        uint64_t number = unwind_take_uleb(&at->code);
        push_register(at, number, unwind_take_sleb(&at->code));
    } else {
        return false;
    }
    return true;
}

static void run_other(struct evaluation *at, uint8_t operation)
{
    struct unwind_bytes *code = &at->code;
    switch (operation) {
    case OP_NOP:
        break;
    case OP_DEREF:
        dereference(at, 8);
        break;
    case OP_DEREF_SIZE:
        dereference(at, unwind_take(code, 1));
        break;
    case OP_DUP:
        pick(at, 0);
        break;
    case OP_DROP:
        (void)pop(at);
        break;
    case OP_OVER:
        pick(at, 1);
        break;
    case OP_PICK:
        pick(at, unwind_take(code, 1));
        break;
    case OP_SWAP:
        swap(at);
        break;
    case OP_ROT:
        rotate(at);
        break;
    case OP_ABS: {
        uint64_t value = pop(at);
        push(at, (int64_t)value < 0 ? 0 - value : value);
        break;
    }
    case OP_NEG:
        push(at, 0 - pop(at));
        break;
    case OP_NOT:
        push(at, ~pop(at));
        break;
    case OP_PLUS_UCONST: {
        uint64_t addend = unwind_take_uleb(code);
        push(at, pop(at) + addend);
        break;
    }
    case OP_SKIP:
        jump(at, unwind_take_signed(code, 2));
        break;
    case OP_BRA: {
        int64_t distance = unwind_take_signed(code, 2);
        if (pop(at) != 0) {
            jump(at, distance);
        }
        break;
    }
    default:
        fail(at, -EINVAL);
        break;
    }
}

int unwind_expression(struct unwind_bytes block, const struct unwind_expression_input *input,
                      uint64_t *result)
{
    uint64_t length = unwind_take_uleb(&block);
    if (block.bad || length > unwind_left(&block)) {
        return -EINVAL;
    }
    struct evaluation at;
    at.code = block;
    at.code.end = block.at + length;
    at.begin = block.at;
    at.input = input;
    at.error = 0;
    at.depth = 0;
    if (input->has_frame) {
        push(&at, input->frame);
    }
    for (unsigned i = 0; at.error == 0 && at.code.at < at.code.end; i++) {
        uint8_t operation = (uint8_t)unwind_take(&at.code, 1);
        if (i == OPERATIONS_MAX) {
            return -EINVAL;
        }
        if (is_binary(operation)) {
            uint64_t right = pop(&at);
            push(&at, combine(&at, operation, pop(&at), right));
        } else if (!run_constant(&at, operation) && !run_register(&at, operation)) {
            run_other(&at, operation);
        }
    }
    *result = pop(&at);
    return at.error != 0 ? at.error : at.code.bad ? -EINVAL : 0;
}
