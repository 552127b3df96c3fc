/* SPDX-License-Identifier: Apache-2.0 */
/* What memory is for: rules over the frames of a place and the lives of its blocks. */
#include "categories.h"

#include <string.h>

/* ---- frames -------------------------------------------------------------------------- */

static bool is_python_in(const struct vs_frame *frame, const char *folder)
{
    return frame->kind == VS_FRAME_PYTHON && frame->file != NULL &&
           strstr(frame->file, folder) != NULL;
}

/* The function's own name: "step" of "Adam.step", all of "step". */
static const char *last_name(const struct vs_frame *frame)
{
    const char *dot = frame->function == NULL ? NULL : strrchr(frame->function, '.');
    return dot != NULL ? dot + 1 : frame->function != NULL ? frame->function : "";
}

bool vs_frame_is_optimizer_step(const struct vs_frame *frame)
{
    return is_python_in(frame, "/torch/optim/") && strcmp(last_name(frame), "step") == 0;
}
