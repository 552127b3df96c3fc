/* SPDX-License-Identifier: Apache-2.0 */
/* `vramscope doctor -- CMD`: watch it run, then read its traces. */
#ifndef VS_CLI_DOCTOR_RUN_H
#define VS_CLI_DOCTOR_RUN_H

#include "doctor_finding.h"

/* 0, or a negative errno value when the question itself could not be put. */
int doctor_run(struct doctor *doctor, char **command);

#endif
