/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growth: what more of stays with every step of the program. Four files: growth.c
 * follows every site while the events pass, steps.c finds the program's steps (step_names.c:
 * of what it names), growth_find.c brings both together at the end.
 *
 * Time is counted in ticks: one for each allocation or free of memory, or object
 * made or destroyed. Memory is bounded by what is live, by the sites and by a
 * fixed number of candidates for the steps, never by the number of events.
 */
#ifndef VS_REPLAY_GROWTH_H
#define VS_REPLAY_GROWTH_H

#include "analysis.h"
#include "places.h"

/* ---- steps.c ------------------------------------------------------------------------ */

/* One occurrence of what may mark the steps. */
struct vs_beat {
    uint32_t tick;
    int32_t level; /* blocks live before it; of a marked step: its number */
    int32_t low;   /* the fewest that a free left since the one before */
    /* Of the last such free (steps.c: note_last_low); without one, and with the first: its own. */
    uint32_t low_tick;
    int64_t held_bytes; /* by the watched device's top layer: at a mark, else at low_tick */
};

enum {
    VS_BEATS_KEPT = 2048,    /* of one candidate; then every other one is forgotten */
    VS_BEATS_OF_A_SIZE = 16, /* candidates whose first two occurrences are about as far apart */
    VS_BEATS_SIZES = 32,
    VS_CANDIDATES = VS_BEATS_OF_A_SIZE * VS_BEATS_SIZES,
    VS_MARKS_KEPT = 64
};

/*
 * Occurrences of one site's allocations, or of one mark. From `first` on, one in
 * `period` is kept: a step is `every` of them.
 */
struct vs_beats {
    struct vs_beat *items;
    size_t count, room;
    uint64_t seen;   /* occurrences in all */
    uint64_t first;  /* ordinal of the first that is kept */
    uint64_t next;   /* ordinal of the next to keep */
    uint64_t period; /* a multiple of `every` */
    uint64_t every;
    uint64_t owner;     /* whose allocations these are: vs_track_key */
    uint32_t last_tick; /* of the last occurrence, kept or not */
    bool settled;       /* `every` is known */
};

enum vs_step_source {
    VS_STEPS_NONE,
    VS_STEPS_MARKED,
    VS_STEPS_NAMED,
    VS_STEPS_FOUND,
    VS_STEPS_BEHIND /* rounds of a loop behind the last step */
};

/* A mark or phase that the program names again and again, perhaps with a number. */
struct vs_named_beats {
    uint64_t pattern; /* of its name */
    uint32_t name;    /* string id of the first */
    uint8_t kind;     /* of the events */
    struct vs_beats beats;
};

struct vs_growth;
struct vs_track;

/* What the steps are, once all events have passed. */
struct vs_steps {
    enum vs_step_source source;
    const struct vs_beats *beats; /* NULL without steps */
    size_t windows;               /* whole stretches between two beats kept */
    uint64_t steps_per_window;
    uint64_t count;    /* of whole steps */
    double confidence; /* 1 marked; found: the share of the program's places that keep to them */
    bool churning;     /* what marks them is given back */
    bool few;          /* of a program that frees nothing, less than it takes for sure */
};

/*
 * Told of an allocation of a track that it asked for. A track whose allocations come
 * back becomes a candidate if there is room.
 */
void vs_steps_beat(struct vs_growth *growth, struct vs_track *track);
void vs_steps_mark(struct vs_growth *growth, const struct vs_sequenced_event *event);
/* Decides what the steps are. 0 or -ENOMEM. */
int vs_steps_find(struct vs_growth *growth, struct vs_steps *out);
/* The window a tick lies in: -1 before the first, `windows` behind the last. */
long vs_steps_window(const struct vs_steps *steps, uint32_t tick);
/* What a print at the ends of steps would have shown of a device's top layer. */
struct vs_step_ends {
    int64_t highest_bytes;
    uint64_t count; /* ends that are known */
};
/* False without steps, and of another device than the first on which something moved. */
bool vs_steps_highest_end(const struct vs_growth *growth, const struct vs_steps *steps,
                          const struct vs_device_state *device, struct vs_step_ends *out);
/*
 * The next loop beside the steps: of a site that comes and goes, begins with the steps or behind
 * them, and allocates once for so many allocations as one in each of its rounds makes. `*at` is 0
 * at first. False behind the last; `out` has its rounds as steps.
 */
bool vs_steps_next_loop(const struct vs_growth *growth, const struct vs_steps *steps,
                        uint64_t allocs, size_t *at, struct vs_steps *out);
/* Number of the first step of a window: as marked, else counted from 1. */
int64_t vs_steps_number(const struct vs_steps *steps, size_t window);

/* ---- step_names.c -------------------------------------------------------------------- */

enum vs_name_says { VS_SAYS_NOTHING, VS_SAYS_PASS, VS_SAYS_STEP };

/*
 * What a name says of its being a step: one of its words is (or ends with) "step", or is "iter" or
 * "iteration"; a pass has a batch or is "forward". Any thread; not in a signal handler.
 */
enum vs_name_says vs_step_name_says(const char *name);

/* ---- growth.c: every site while the events pass ------------------------------------------ */

/* What has been live since a moment: nothing was live above it at some time before. */
struct vs_level {
    uint32_t tick;
    int32_t count;
    int64_t bytes;
};

/* One site, or the objects of one kind that are made at a site. */
struct vs_track {
    struct vs_level *levels; /* each rests on those before; the last is the newest */
    uint32_t level_count, level_room;
    uint32_t allocs, frees;
    uint32_t next_beat; /* the allocation steps.c wants to hear of */
    uint32_t fall_tick;
    int64_t bytes; /* live */
    int32_t count;
    /* Frees since the last allocation: not taken off the levels before the next one. */
    int32_t fall_count;
    int64_t fall_bytes;
    uint32_t site;
    uint16_t candidate; /* number, 0 none */
    uint8_t object;     /* enum vs_object_kind + 1, 0: memory */
    uint8_t followed;   /* 0 not decided, 1 yes, 2 no */
    /* The highest it was before a fall. */
    int64_t high_bytes;
    int32_t high_count;
    uint32_t high_tick;
    uint32_t first_tick;
    uint32_t graphs;        /* of those instantiated, at its last allocation */
    uint32_t allocs_before; /* the last of them */
    uint32_t captured;      /* allocations made while a graph was captured */
};

struct vs_growth {
    struct vs_track *tracks; /* by site id - 1 */
    size_t track_count, track_room;
    struct vs_track *objects;
    size_t object_count, object_room;
    struct vs_sizes object_index; /* by kind and site: position + 1 */
    uint32_t tick;
    uint32_t from_tick;         /* of a window's beginning */
    uint32_t made_tick;         /* of the last allocation */
    uint32_t graph_tick;        /* of the last graph instantiated */
    uint32_t graphs;            /* how many were */
    int32_t live;               /* blocks and objects followed */
    uint64_t began_ns, made_ns; /* of the first allocation, of the last one */
    uint64_t over_ns;           /* of the first free behind the last one; old where there is none */
    uint32_t *fell_to; /* for every number up to `live`: when so many or fewer were last left */
    size_t fell_room;
    int64_t *fell_held; /* beside fell_to: what the watched device's top layer held then */
    size_t fell_held_room;
    const struct vs_device_state *watched; /* the first device on which something moved */
    struct vs_beats *candidates[VS_CANDIDATES];
    struct vs_beats marked;
    struct vs_named_beats named[VS_MARKS_KEPT];
    size_t named_count;
    const struct vs_state *state;
    int error;
};
int vs_growth_start(struct vs_growth *growth, struct vs_state *state, struct vs_objects *objects);
/* Steps count from here on; what is live stays. */
void vs_growth_restart(struct vs_growth *growth);
void vs_growth_release(struct vs_growth *growth);
static inline uint64_t vs_track_key(const struct vs_track *track)
{
    return (uint64_t)track->object << 32 | track->site;
}
/* What the watched device's top layer holds now. */
static inline int64_t vs_growth_held(const struct vs_growth *growth)
{
    const struct vs_device_state *device = growth->watched;
    return device == NULL ? 0 : device->layers[vs_device_top_layer(device)].live_bytes;
}
/* Takes what was freed last off the levels. */
void vs_track_settle(struct vs_track *track);
/* The track at a position over memory and objects; NULL behind the last. */
struct vs_track *vs_growth_track(const struct vs_growth *growth, size_t position);

/* ---- growth_find.c: what grows ------------------------------------------------------- */

enum vs_growth_confidence { VS_GROWTH_MEDIUM = 1, VS_GROWTH_HIGH };
/* What people read of it, everywhere: "sure", "likely" or "rises and falls". Static text. */
const char *vs_growth_word(enum vs_growth_confidence confidence, bool falls);

struct vs_grown {
    uint32_t place; /* index of its place */
    uint32_t site;  /* the lowest of its sites that grows */
    uint8_t object; /* enum vs_object_kind + 1, 0: memory */
    bool falls;     /* it had reached as much before, and was given back */
    bool behind;    /* its steps are rounds of a loop behind the last step, counted from 1 */
    enum vs_growth_confidence confidence;
    double bytes_per_step, count_per_step;
    uint64_t steps;
    int64_t first_step;
    int64_t grown_bytes, grown_count; /* in these steps */
    int64_t end_bytes, end_count;     /* held at the end, with what the end gave back */
    int64_t given_back_bytes;         /* of it, after the last whole step */
    int64_t given_back_count;
    uint64_t oldest_steps, median_steps; /* age of what has stayed */
};

struct vs_grown_list {
    struct vs_grown *items; /* the worst first */
    size_t count, room;
    struct vs_steps steps;
};
/* 0 or -ENOMEM. `growth` is as good as used up. */
int vs_growth_find(struct vs_growth *growth, const struct vs_places *places,
                   struct vs_grown_list *out);
void vs_grown_release(struct vs_grown_list *list);
/* What one entry's steps are. */
enum vs_step_source vs_grown_source(const struct vs_grown_list *list, const struct vs_grown *grown);
const char *vs_step_source_name(enum vs_step_source source);

#endif
