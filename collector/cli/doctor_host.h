/* SPDX-License-Identifier: Apache-2.0 */
/* `vramscope doctor` alone: what this machine and this installation can do. */
#ifndef VS_CLI_DOCTOR_HOST_H
#define VS_CLI_DOCTOR_HOST_H

#include <stddef.h>

#include "doctor_finding.h"

/* 0, or a negative errno value when the question itself could not be put. */
int doctor_host(struct doctor *doctor);

/* The shim beside this executable (installed or in the build folder). 0 or
 * -ENOENT. */
int doctor_find_shim(char *out, size_t bytes);
int doctor_find_beside(const char *name, char *out, size_t bytes);

#endif
