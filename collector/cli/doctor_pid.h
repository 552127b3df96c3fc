/* SPDX-License-Identifier: Apache-2.0 */
/* `vramscope doctor --pid N`: a process that runs already. */
#ifndef VS_CLI_DOCTOR_PID_H
#define VS_CLI_DOCTOR_PID_H

#include <sys/types.h>

#include "doctor_finding.h"

/* 0, or a negative errno value when the question itself could not be put. */
int doctor_pid(struct doctor *doctor, pid_t pid);

#endif
