/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hooked entry points as text, generated from hooks.def: for `doctor`, which
 * says which of them a program's libraries define. Needs nothing of the shim.
 */
#ifndef VS_SHIM_HOOK_LIST_H
#define VS_SHIM_HOOK_LIST_H

struct hook_list_row {
    const char *name;  /* exported symbol */
    const char *level; /* "driver", "runtime", "framework" */
    const char *group; /* "memory", "order" … */
    const char *kind;  /* event it becomes; "" for look-ups and labels */
};

extern const struct hook_list_row hook_list[];
extern const unsigned hook_list_count;

#endif
