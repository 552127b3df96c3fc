/* SPDX-License-Identifier: Apache-2.0 */
/* The one kernel of a simulated CUDA library, launched through the static runtime
 * that the library carries, and its way to say what it does not simulate. */
#ifndef SIMGPU_BLAS_KERNEL_H
#define SIMGPU_BLAS_KERNEL_H

#include <cuda_runtime_api.h>

/* One launch of the kernel that does nothing; a node while the stream captures. */
cudaError_t simlib_launch(cudaStream_t stream);

/* Says once per name (a string literal) that a call is not simulated. */
void simlib_say_unsupported(const char *name);

#endif
