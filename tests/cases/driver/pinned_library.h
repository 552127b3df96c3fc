/* SPDX-License-Identifier: Apache-2.0 */
/* A host cache of PyTorch's shape, built under the name of the library that has the real one. */
#ifndef CASES_PINNED_LIBRARY_H
#define CASES_PINNED_LIBRARY_H

#include <stddef.h>

/* Pinned memory: the next power of two of `bytes`; NULL when it is refused. */
void *pinned_malloc(size_t bytes);

#endif
