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

/*
 * Short cuts past key and search, for walks that were recalled: a walk's tag, of
 * either kind, stands for what it gave. `where`: what else the key is made of.
 */
struct stack_pair {
    uint64_t native, python, where;
};

/* Id that was kept for a pair of walks; 0: none. */
uint32_t stack_pair_find(const struct stack_pair *pair);
/* `id`: what stack_table_find said of it. */
void stack_pair_keep(const struct stack_pair *pair, uint32_t id);

#endif
