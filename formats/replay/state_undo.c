/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frees are told before the real call. One that fails is taken back by an UNDO
 * that names its sequence: the last VS_UNDO_KEPT frees are kept for that, far
 * more than threads can have under way.
 */
#include <stdlib.h>

#include "grow.h"
#include "state_internal.h"

/* CUDA_ERROR_DEINITIALIZED and cudaErrorCudartUnloading: the driver has shut down. */
enum { RESULT_SHUT_DOWN = 4 };

/* The call beneath follows at once; other threads' frees may come in between. */
enum { REPEATED_WITHIN = 64 };

struct vs_undo *undo_begin(struct vs_state *state, const struct vs_sequenced_event *event)
{
    /* An end is announced like a free: an exec may fail. */
    if (!(event->event.flags & VS_EVENT_INTENT) && event->event.kind != VS_KIND_PROCESS_END)
        return NULL;
    struct vs_undo *undo = &state->undos[state->undo_next];
    state->undo_next = (state->undo_next + 1) % VS_UNDO_KEPT;
    free(undo->ranges);
    free(undo->dropped);
    *undo = (struct vs_undo){.sequence = event->sequence, .event = event->event};
    return undo;
}

static struct vs_undo *find(struct vs_state *state, uint64_t sequence)
{
    for (size_t back = 1; back <= VS_UNDO_KEPT; back++) {
        size_t at = (state->undo_next + VS_UNDO_KEPT - back) % VS_UNDO_KEPT;
        if (state->undos[at].sequence == 0)
            return NULL;
        if (state->undos[at].sequence == sequence)
            return &state->undos[at];
    }
    return NULL;
}

static void restore(struct vs_state *state, struct vs_undo *undo)
{
    if (undo->unknown && undo->event.kind == VS_KIND_PHYS_RELEASE)
        state->counts.handles_unknown--;
    else if (undo->unknown &&
             (undo->event.kind == VS_KIND_UNMAP || undo->event.kind == VS_KIND_UNRESERVE))
        state->counts.ranges_unknown--;
    else if (undo->unknown || (undo->what == VS_UNDO_ALLOCATION && !undo->repeated))
        memory_restore(state, undo);
    if (undo->what == VS_UNDO_HANDLE || undo->what == VS_UNDO_RANGES)
        vmm_restore(state, undo);
    else if (undo->what == VS_UNDO_CONTEXT)
        context_restore(state, undo);
}

bool undo_repeats(struct vs_state *state, uint64_t address)
{
    for (size_t back = 1; back <= REPEATED_WITHIN; back++) {
        struct vs_undo *undo =
            &state->undos[(state->undo_next + VS_UNDO_KEPT - back) % VS_UNDO_KEPT];
        if (undo->sequence != 0 && undo->what == VS_UNDO_ALLOCATION && !undo->repeated &&
            undo->event.flags & VS_EVENT_RUNTIME && undo->event.address == address) {
            undo->repeated = true;
            return true;
        }
    }
    return false;
}

void undo_take(struct vs_state *state, const struct vs_sequenced_event *event)
{
    struct vs_undo *undo = find(state, event->event.handle);
    if (undo == NULL) {
        state->counts.undo_unmatched++;
        return;
    }
    state->undone = &undo->event;
    if (event->event.result == RESULT_SHUT_DOWN) {
        state->counts.frees_at_shutdown++;
        return;
    }
    if (event->event.result != 0)
        state->counts.undone++; /* else the call beneath is the event */
    restore(state, undo);
    communicator_undo(state, event);
    undo->what = VS_UNDO_NOTHING;
    undo->unknown = false;
}

bool undo_keep_dropped(struct vs_undo *undo, struct vs_allocations *map, uint64_t key,
                       const struct vs_allocation *allocation)
{
    if (!vs_grow(&undo->dropped, &undo->dropped_room, undo->dropped_count + 1,
                 sizeof(*undo->dropped)))
        return false;
    undo->dropped[undo->dropped_count++] =
        (struct vs_undo_dropped){.map = map, .key = key, .allocation = *allocation};
    return true;
}

void undo_release(struct vs_state *state)
{
    for (size_t i = 0; state->undos != NULL && i < VS_UNDO_KEPT; i++) {
        free(state->undos[i].ranges);
        free(state->undos[i].dropped);
    }
    free(state->undos);
}
