/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What memory is for, told from where it was asked for and how long it lives.
 * Each category says which rule decided; `unknown` where none did.
 */
#ifndef VS_REPLAY_CATEGORIES_H
#define VS_REPLAY_CATEGORIES_H

#include "frames.h"

/* A frame of the step of one of PyTorch's optimizers. */
bool vs_frame_is_optimizer_step(const struct vs_frame *frame);

#endif
