/* SPDX-License-Identifier: Apache-2.0 */
/* What the hooks of libraries above CUDA (hook_torch.c, hook_nccl.c …) have in common. */
#ifndef VS_SHIM_HOOK_FRAMEWORK_H
#define VS_SHIM_HOOK_FRAMEWORK_H

#include "hook.h"

/*
 * Puts one event into the ring under the hook's name, with the device that is
 * current where the event names none; that of a block is known by its address. No hook of ours is
 * open afterwards: calls that the library makes next are its own. Returns the record's sequence, 0
 * when there is none.
 */
uint64_t framework_tell(unsigned hook, struct vs_event *event, const void *caller);

/* The same, if something is recorded at all, of an event that names no device. errno stays. */
void framework_tell_guarded(unsigned hook, struct vs_event event, const void *caller);

/* The library's own function behind a hook, for who called from `caller`; NULL, with the warning
   counted, where it is not known. errno stays. */
void *framework_real(unsigned hook, const void *caller);

/* hook_nccl.c: what a look-up of a hooked name that found `found` gets. */
void *nccl_wrap(unsigned hook, void *found);

#endif
