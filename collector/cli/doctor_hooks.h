/* SPDX-License-Identifier: Apache-2.0 */
/* What a trace says of each hook. */
#ifndef VS_CLI_DOCTOR_HOOKS_H
#define VS_CLI_DOCTOR_HOOKS_H

#include "doctor_finding.h"

/* Reads every trace in a folder and says what took effect. Returns the number
 * of traces. */
int doctor_hooks(struct doctor *doctor, const char *folder, const char *shim);
/* Says which hooks have nothing to stand before in the libraries a program
 * loaded (NULL: none). */
void doctor_unresolved(struct doctor *doctor, const char *shim, const char *driver,
                       const char *runtime);

#endif
