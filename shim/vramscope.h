/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libvramscope.so offers a program that knows of it. Look the names up with
 * dlsym(RTLD_DEFAULT, …) so that the program runs without us too. All are
 * thread-safe, async-signal-safe, leave errno alone and cost nothing when
 * nothing is recorded.
 */
#ifndef VRAMSCOPE_H
#define VRAMSCOPE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A point in time with a name (UTF-8, at most 1024 bytes are kept). */
void vramscope_mark(const char *text);
/* A training step begins. */
void vramscope_step(uint64_t number);
/* A phase begins; phases nest, per thread. */
void vramscope_begin(const char *name);
/* The innermost phase of this thread ends. */
void vramscope_end(void);

/* By PyTorch's own count, in bytes; the first two since the start or the last reset. */
struct vramscope_peak {
    uint64_t allocated_bytes;
    uint64_t reserved_bytes;
    uint64_t now_bytes; /* allocated at this moment */
};

/*
 * The most that PyTorch's allocator held on device `device` (its ordinal in this process).
 * Returns 0; -ENODATA while PyTorch has reported nothing there (another framework, no
 * recording); -EINVAL for a device beyond 63 or a null pointer.
 */
int vramscope_peak(int device, struct vramscope_peak *out);
/* The peaks of that device start anew from what is held now. */
void vramscope_reset_peak(int device);

#ifdef __cplusplus
}
#endif

#endif
