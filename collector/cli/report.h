/* SPDX-License-Identifier: Apache-2.0 */
/* The two forms of a report over one summary: the page and the JSON. */
#ifndef VS_CLI_REPORT_H
#define VS_CLI_REPORT_H

#include <stdio.h>

#include "replay/categories.h"
#include "replay/growth.h"
#include "replay/places.h"
#include "replay/recent.h"
#include "replay/shared.h"
#include "replay/summary.h"

struct report_options {
    bool json;
    bool markdown;
    bool what_is_inside;
    bool alone;    /* no trace beside it is looked into */
    bool full;     /* every frame, no folding */
    bool by_given; /* JSON: add the groups */
    enum vs_group_by by;
    int64_t min_bytes; /* places below it, at the peak and at the end, are summed up */
    size_t top;        /* places listed; 0: as many as fit the page, all in JSON */
    int device;        /* -1: all */
    struct vs_window window;
};

/* Why a trace of a folder is looked at before another: the higher the sooner. */
enum report_urgency { REPORT_ENDED_WELL, REPORT_ENDED_BADLY, REPORT_OUT_OF_MEMORY };

/* A trace of a folder, listed beside the one reported. */
struct report_other {
    const char *path;
    enum report_urgency urgency;
    char ended[48];     /* how, for people */
    const char *end;    /* "exit", "killed", "exec", "unknown" */
    int64_t peak_bytes; /* of its fullest device's top layer */
    int64_t end_bytes;  /* of the same */
    int device;         /* that one; -1 none */
    json_int_t rank;    /* -1 unknown */
    uint64_t failed_at; /* real time in ns of the request it did not survive; 0 unknown or none */
    json_int_t pid;
    struct vs_shared shared; /* what it exported or opened and has at its end */
};

struct report_others {
    struct report_other *items;
    size_t count;
    const struct report_other *chosen; /* the one reported; NULL: no word on why */
    size_t as_urgent;                  /* as that one, itself included */
};

struct report {
    const struct vs_summary *summary;
    const struct vs_places *places;
    const struct report_options *options;
    const struct report_others *others; /* may be NULL */
    const struct vs_grown_list *grown;
    const struct vs_categories *categories;
    const struct vs_lifetimes_found *lifetimes;
    const struct vs_recents *recents;
    const struct vs_cuts *beside; /* what the trace that goes with it lacks; may be NULL */
};

/*
 * The next process of the folder's other traces that has the same memory: `exported` memory of
 * this one open, or exported what this one opened. `*from`: 0 at first. NULL: no more.
 */
const struct report_other *report_shared_with(const struct report *report,
                                              const struct vs_shared_memory *memory, bool exported,
                                              size_t *from);

/*
 * report.c: finds out which sites of a summary are one place and what grows, and
 * hands it all to `use`, whose exit status it returns.
 */
typedef int report_use(const struct report *report, void *self);
int report_make(const char *path, struct vs_summary *summary, const struct report_options *options,
                const struct report_others *others, report_use *use, void *self);

void report_print(FILE *out, const struct report *report);
/* False without memory; the text is incomplete then. The fields are "vramscope-report/1". */
bool report_write_json(FILE *out, const struct report *report);

/* report_markdown.c: short, for an issue tracker. False without memory. */
bool report_write_markdown(FILE *out, const struct report *report);

/* report_options.c: returns -1 to go on, else the exit status. `*path`: the trace or folder. */
int report_parse(int argc, char **argv, struct report_options *options, const char **path);

/* report_folder.c: the traces of a folder, the one to report first, then the most urgent ones and
   by rank. */
struct report_folder {
    char **paths;
    size_t path_count, path_room;
    struct report_others traces;
    bool all_read;
};
/* Only the paths, by name. 0 or a negative errno value; release it in any case. */
int report_list_traces(const char *path, struct report_folder *folder);
/* False with a line on stderr when there is nothing to report. Release it in any case. */
bool report_open_folder(const char *path, struct report_folder *folder);
void report_release_folder(struct report_folder *folder);

/*
 * siblings.c: looks into the traces beside `path` for what other processes held when
 * requests of this one failed (replay/siblings.h). False with a line on stderr without memory.
 */
bool report_look_beside(const char *path, struct vs_summary *summary);

/* report_other_names.c: who a process is that NVML named; texts are "" and times 0 if not known. */
struct report_other_process {
    const char *title, *exe; /* of the summary */
    uint64_t parent_pid;     /* 0 unknown */
    bool age_known;
    uint64_t age_ns; /* at the moment asked for */
};
struct report_other_process report_name_other(const struct vs_summary *summary, uint64_t pid,
                                              uint64_t time_ns);

/* ---- names ------------------------------------------------------------------------- */

/* Name of an owner for people: "PyTorch" for its allocator's library. */
const char *report_owner_title(const struct vs_summary *summary, uint16_t owner);
/* The same of a device's framework. */
const char *report_framework_name(const struct vs_summary *summary,
                                  const struct vs_device_state *device);
const char *report_layer_name(unsigned layer);
const char *report_implicit_name(unsigned which);
const char *report_group_name(enum vs_group_by by);
/* Events at which the framework's totals and ours differed and no loss explains it. */
uint64_t report_mismatches(const struct vs_summary *summary, const struct vs_device_state *device);
/* Error name of a result, by the call's prefix; into `buffer` when it has no name. */
const char *report_error_name(const struct vs_summary *summary, uint16_t label, int32_t result,
                              char *buffer, size_t bytes);
/* Time in the shim and waiting for room; false when the trace does not say. */
bool report_overhead(const struct vs_summary *summary, uint64_t *spent_ns, uint64_t *waited_ns,
                     double *percent);
/* Whether the options leave out what is on this device; -1 is no device. */
bool report_hides_device(const struct report *report, int device);
bool report_lists_oom(const struct report *report, const struct vs_oom *oom);
/* Whether --min-bytes leaves it out of the lists. */
bool report_is_small(const struct report *report, const struct vs_site_stats *stats);

#endif
