/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sections of the report for people, one file each, and what they ask of each
 * other. A section prints its own heading, and nothing when it has nothing to say.
 */
#ifndef VS_CLI_REPORT_SECTIONS_H
#define VS_CLI_REPORT_SECTIONS_H

#include "report_words.h"

enum { DEVICE_OFFSET = 128 };

/* report_head.c: the program, the answer, what was lost. */
void report_print_head(const struct page *page, const struct report *report);
/* Its parts: who and which window; the answer; what was lost. */
void report_print_program(const struct page *page, const struct report *report);
void report_print_answer(const struct page *page, const struct report *report);
void report_print_losses(const struct page *page, const struct report *report);
/* report_page.c: everything below the head. */
void report_print_sections(const struct page *page, const struct report *report);
/* Events, records or parts of the file are missing. */
bool report_lost_something(const struct vs_summary *summary);
/* Whether the answer tells why this request failed: the one the program did not survive. */
bool report_answers_oom(const struct report *report, const struct vs_oom *oom);
/* report_ooms.c: requests that failed for want of memory. */
void report_print_ooms(const struct page *page, const struct report *report);
/* report_siblings.c: what other processes held at a failure; which traces that is known from. */
void report_print_siblings(const struct page *page, const struct report *report, size_t oom);
void report_print_looked(const struct page *page, const struct report *report);
/* report_devices.c: each device's peak and end, and its bands at the peak. */
void report_print_devices(const struct page *page, const struct report *report);
/* report_peak.c: what of a device's peak was made last, and whether prints can have seen it. */
void report_print_before_peak(const struct page *page, const struct report *report,
                              const struct vs_device_state *device);
/* report_sites.c: which places of the program hold the memory. */
void report_print_sites(const struct page *page, const struct report *report);
/* report_lifetimes.c: how long memory lives, and what of a peak were temporaries. */
void report_print_lifetimes(const struct page *page, const struct report *report);
/* report_churn.c: memory given back to the driver and asked for again, over and over. */
void report_print_churn(const struct page *page, const struct report *report);
/* report_growth.c: what grows with every step; a sentence of the answer, "" when nothing does. */
void report_print_growth(const struct page *page, const struct report *report);
void report_describe_growth(const struct report *report, char *out, size_t room);
/* report_holders.c: the stacks of a group that hold a good part of `whole`. */
void report_print_holders(const struct page *page, const struct report *report,
                          const struct vs_group *group, bool at_end, int64_t whole);
/* The heaviest group with a stack at the peak of a device's layer, or NULL. */
const struct vs_group *report_heaviest(const struct report *report, int device,
                                       enum vs_layer layer);
/* report_categories.c: what the memory of a device's top layer was for. */
void report_print_categories(const struct page *page, const struct report *report,
                             const struct vs_device_state *device);
/* The largest of them at the peak, as words of the answer; "" when none is known. */
struct page_text report_main_category(const struct report *report,
                                      const struct vs_device_state *device);
/* report_phases.c: what each phase held, marked or found. */
void report_print_phases(const struct page *page, const struct report *report);
/* report_calls.c: calls that failed, objects, time in calls. */
void report_print_failures(const struct page *page, const struct report *report);
void report_print_objects(const struct page *page, const struct report *report);
void report_print_calls(const struct page *page, const struct report *report);
/* report_communicators.c: NCCL's, and the memory of each. */
void report_print_shared(const struct page *page, const struct report *report);
void report_print_communicators(const struct page *page, const struct report *report);
/*
 * report_beside.c: of what a device had in use when it was fullest, what is not certain to be
 * this process's, by NVML and by the traces beside this one.
 */
struct report_foreign {
    int64_t theirs;                /* other processes', traced or not */
    int64_t traced;                /* of it by their own traces */
    int64_t unexplained;           /* nobody's; may be below zero */
    int64_t uncertain;             /* of what is by difference, beyond the context: may be theirs */
    size_t processes;              /* traced ones that held some */
    const struct vs_sibling *most; /* the one of these that held most; NULL none */
};
struct report_foreign report_foreign_of(const struct vs_summary *summary,
                                        const struct vs_device_state *device,
                                        const struct vs_bands *bands);
/* " Of that 1.00 GiB was held by …", or "". */
void report_describe_beside(const struct report *report, const struct vs_device_state *device,
                            char *out, size_t room);
/* " It held 100 MiB and a context of 300 MiB …": on a device beside the one spoken of; or "". */
void report_describe_elsewhere(const struct report *report, const struct vs_device_state *device,
                               char *out, size_t room);
void report_print_beside(const struct page *page, const struct report *report,
                         const struct vs_device_state *device);
/* report_others.c: why this trace of its folder was chosen, and a table of the others. */
void report_print_chosen(const struct page *page, const struct report *report);
void report_print_others(const struct page *page, const struct report *report);
/* report_recording.c: the host, and the recording itself. */
void report_print_host(const struct page *page, const struct report *report);
void report_print_recording(const struct page *page, const struct report *report);

/* ---- stacks (report_stacks.c) ------------------------------------------------------- */

/* Frames of a place and which of them names it; count 0 without a stack. */
struct report_stack {
    const struct vs_frame *frames; /* valid until the next stack is asked for */
    long count, named;
};
struct report_stack report_stack_of(const struct report *report, const struct vs_place *place);
/* A frame as places are named after it. */
void report_frame_title(const struct report *report, const struct vs_frame *frame,
                        enum vs_group_by by, char *out, size_t room);
/* "train.py:42 in step", as far as `by` goes; without a stack what was called by whom. */
void report_place_title(const struct report *report, const struct vs_place *place,
                        enum vs_group_by by, char *out, size_t room);
/*
 * The stack of a place, a frame a line, unless --full folded: the program's own
 * frames, and runs of others as one line. `titled`: the line that the place is
 * named after stands above already.
 */
void report_print_stack(const struct page *page, const struct report *report, int indent,
                        const struct vs_place *place, bool titled);
/* "train.py:42 in step", what a site is named after; "" without a stack. */
struct page_text report_by(const struct report *report, uint32_t site);
/* "by" that, and the rest of its stack further in; nothing where the stack is not known. */
void report_print_by(const struct page *page, const struct report *report, int indent,
                     uint32_t site);

#endif
