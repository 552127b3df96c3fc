/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of symbols as people read them: C++ (Itanium) and Rust (legacy and v0)
 * by libiberty, in bounded room whatever the name unfolds to.
 */
#ifndef VS_SYMBOLS_DEMANGLE_H
#define VS_SYMBOLS_DEMANGLE_H

#include <stddef.h>

/* Stack that demangling the longest accepted name may take. */
#define DEMANGLE_STACK_BYTES (64U << 20)

/*
 * Writes the readable form of `symbol`, or the symbol itself where there is none,
 * as clean text: what does not fit is cut and ends in "…".
 */
void demangle(const char *symbol, char *out, size_t out_bytes);

/* Copies text that came from a file: control characters and broken UTF-8 become '?'. */
void clean_text(const char *text, size_t bytes, char *out, size_t out_bytes);

#endif
