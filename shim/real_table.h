/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the real functions are. Two views of the same knowledge:
 *
 *   choice[key][id]  which definition a caller binds to, by the CUDA runtime it was linked against
 *                    (`key`); worked out from the loaded objects' symbol tables, like the loader
 * does slot[id][n]      real functions that look-ups handed out, each with an entry point of ours
 *
 * Reading is lock-free. Filling reads ELF tables under dl_iterate_phdr and calls
 * nothing of the loader's that takes its load lock, so that it may happen even
 * in a hook: when its caller's module or its real function is not known yet.
 */
#ifndef VS_SHIM_REAL_TABLE_H
#define VS_SHIM_REAL_TABLE_H

#include <stdbool.h>
#include <stdint.h>

/* Works everything out anew: at start, in look-ups, after dlclose. */
void real_refresh(void);
/* The same, if objects were loaded since, or 100 ms have gone by. True when it looked. */
bool real_refresh_if_stale(void);
/* A dlopen is about to happen: what is known will be stale. */
void real_loading(void);

/* The real function for a call through the preloaded symbol; `module` is its caller's id. NULL:
 * none. */
void *real_for_module(unsigned id, uint32_t module);
/* The real function behind entry point `slot`. */
void *real_in_slot(unsigned id, unsigned slot);
/* The definition that a caller of no particular scope would get: for the shim's own calls. */
void *real_any(unsigned id);
/* The slot that stands for `found`, a new one if need be; -1 when all are taken. */
int real_slot_of(unsigned id, void *found);
/* A function of the shim's own use that cannot be found in a symbol table came from a look-up. */
void real_offer(unsigned id, void *found);
/* True for addresses inside this library. */
bool real_is_ours(const void *address);

#endif
