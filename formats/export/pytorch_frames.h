/* SPDX-License-Identifier: Apache-2.0 */
/* The stacks of the PyTorch export. */
#ifndef VS_EXPORT_PYTORCH_FRAMES_H
#define VS_EXPORT_PYTORCH_FRAMES_H

#include "pytorch_snapshot.h"

/* "frames": the list of a stack's frames, innermost first; empty for stack 0. */
void vs_snapshot_frames(struct vs_snapshot *snapshot, uint32_t stack);

#endif
