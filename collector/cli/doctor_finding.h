/* SPDX-License-Identifier: Apache-2.0 */
/* What `vramscope doctor` finds: one line each. */
#ifndef VS_CLI_DOCTOR_FINDING_H
#define VS_CLI_DOCTOR_FINDING_H

#include <stdbool.h>

struct doctor {
    unsigned faults;
    bool all; /* --all: also what is usual */
};

/* All is well; a fact; something that keeps memory events from being recorded
 * (exit status 1). */
void doctor_ok(struct doctor *doctor, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void doctor_note(struct doctor *doctor, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void doctor_fault(struct doctor *doctor, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
