/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Real functions behind the names this library interposes. libc's dlsym cannot
 * be asked for them: its own name is interposed (by us, perhaps by another
 * preload), and before glibc 2.34 a program without libdl has none. So the
 * loaded objects' symbol tables are read directly.
 */
#ifndef VS_SHIM_REAL_DL_H
#define VS_SHIM_REAL_DL_H

#include <stdbool.h>

/*
 * The next definition of `name` behind this library in the order of loading,
 * which is the order of search; if there is none, the first in any other
 * object. NULL when nobody defines it. Asks the loader for its list only
 * (dl_iterate_phdr).
 */
void *real_next(const char *name);
/* True when an object before this library in that order defines `name`. */
bool real_defined_before(const char *name);

/* dlsym, for tail calls: RTLD_NEXT and RTLD_DEFAULT look at the return address. NULL: none yet. */
extern void *(*shim_real_dlsym_ptr)(void *handle, const char *name);

/* Fills shim_real_dlsym_ptr when it can. Any thread, any number of times. */
void real_dl_load(void);

/* dlsym; the caller it sees is us. NULL when there is none. Never from a hook body. */
void *real_dlsym(void *handle, const char *name);

#endif
