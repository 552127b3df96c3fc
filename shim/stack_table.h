/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which stack has which id: a table of fixed size, without locks, that never
 * forgets. An id shows only once somebody settled it, which is when its record
 * is committed. Nobody waits for an entry that another thread has begun; whoever
 * needs it next may settle it, so an owner that is gone leaves nothing behind.
 *
 * The table lies in pages that the kernel wipes in a forked child.
 */
#ifndef VS_SHIM_STACK_TABLE_H
#define VS_SHIM_STACK_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* 128 bits; neither half is 0. */
struct stack_key {
    uint64_t key;
    uint64_t check;
};

/* Maps the table, once; -ENOMEM: every stack is then a new one. */
int stack_table_begin(void);
/* Id of a settled stack; 0: none. */
uint32_t stack_table_find(const struct stack_key *key);
/*
 * The place of the stack's id, begun if need be; NULL when there is no room. What
 * it holds is 0, or the id that another thread settled since.
 */
_Atomic uint32_t *stack_table_claim(const struct stack_key *key);
/* False when the place has an id already: that one stays. */
bool stack_table_settle(_Atomic uint32_t *place, uint32_t id);

#endif
