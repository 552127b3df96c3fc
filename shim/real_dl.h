/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libc's own dlsym, past every interposed one (ours included). Filled in the
 * constructor, and by whoever comes first before that.
 */
#ifndef VS_SHIM_REAL_DL_H
#define VS_SHIM_REAL_DL_H

/* For tail calls: RTLD_NEXT and RTLD_DEFAULT look at the return address. Set after real_dl_load().
 */
extern void *(*shim_real_dlsym_ptr)(void *handle, const char *name);

/* Idempotent, any thread; needs the loader (never from a hook body). */
void real_dl_load(void);

/* dlsym as libc has it; the caller it sees is us. NULL when libc has none. Never from a hook body.
 */
void *real_dlsym(void *handle, const char *name);

#endif
