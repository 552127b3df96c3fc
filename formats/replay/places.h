/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where memory was asked for, as people read it. Sites are told apart by stack
 * id; ids whose stacks mean the same frames (another generation of the module
 * map, a copy sent in line) are one place here. Places are grouped by the line,
 * function or module of the program that they lead to, or not at all.
 */
#ifndef VS_REPLAY_PLACES_H
#define VS_REPLAY_PLACES_H

#include "analysis.h"
#include "frames.h"

/* Where frames come from: the trace's, or a test's own table. */
struct vs_stack_source {
    void *self;
    /* Frames of a stack id, innermost first; valid until the next call. A count or -ENOMEM. */
    long (*frames)(void *self, uint32_t stack, const struct vs_frame **out);
};

enum vs_group_by { VS_BY_LINE, VS_BY_FUNCTION, VS_BY_MODULE, VS_BY_STACK };

struct vs_place {
    uint32_t site;   /* the lowest of its sites: says kind, layer, device, owner and call */
    uint32_t group;  /* index */
    uint64_t number; /* the lowest stack id with these frames; without a stack above all ids */
    bool has_stack;  /* frames are known */
    struct vs_site_stats stats; /* of all its sites */
};

/* Places of one layer of one device that lead to the same line, function, module or stack. */
struct vs_group {
    uint32_t place; /* the one with the highest peak */
    uint32_t places;
    struct vs_site_stats stats;
};

struct vs_places {
    const struct vs_state *state;
    struct vs_stack_source source;
    enum vs_group_by by;
    struct vs_place *items; /* in the order of their lowest sites */
    size_t count;
    uint32_t *of_site; /* by site id - 1: index of the place */
    struct vs_group *groups;
    size_t group_count;
    size_t stacks;    /* different ones, after merging */
    uint64_t unnamed; /* different addresses whose names were not looked for yet */
    char root[512];   /* the folder that all Python files of the program are in, with its slash */
};

/* `sites` must be finished; all three are kept. Returns 0 or -ENOMEM. */
int vs_places_create(const struct vs_state *state, const struct vs_sites *sites,
                     const struct vs_stack_source *source, enum vs_group_by by,
                     struct vs_places *out);
void vs_places_release(struct vs_places *places);

/* The place of a site id, NULL for 0. */
const struct vs_place *vs_places_of(const struct vs_places *places, uint32_t site);
const struct vs_site *vs_places_site(const struct vs_places *places, const struct vs_place *place);
/* Frames of a place, innermost first; valid until the next call. 0 without a stack. */
long vs_places_frames(const struct vs_places *places, const struct vs_place *place,
                      const struct vs_frame **out);

/*
 * Index of the frame a place is named after: the program's own (vs_frames_own);
 * where there is none the innermost Python frame, else the node of PyTorch's
 * backward pass, else the innermost native frame that is not an allocator's or
 * CUDA's, else the innermost. -1 when there is none.
 */
long vs_places_frame(const struct vs_frame *frames, size_t count);

/*
 * The autograd node that this frame runs ("MmBackward0::apply(…"), a part of the
 * function's name; NULL for other frames.
 */
const char *vs_frame_backward_node(const struct vs_frame *frame);

#endif
