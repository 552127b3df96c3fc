/* SPDX-License-Identifier: Apache-2.0 */
/* The events of one device in the PyTorch export. */
#ifndef VS_EXPORT_PYTORCH_TRACE_H
#define VS_EXPORT_PYTORCH_TRACE_H

#include "pytorch_snapshot.h"

/* The list of entries of one device. 0 or a negative errno value. */
int vs_snapshot_trace(struct vs_snapshot *snapshot, int8_t device);

#endif
