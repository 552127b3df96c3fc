/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the VMM calls between processes, two cases of driver_cases: see vmm_shared.c. */
#ifndef VS_TESTS_CASES_VMM_SHARED_H
#define VS_TESTS_CASES_VMM_SHARED_H

#include <stdbool.h>

/* Pieces of virtual memory given to another process, which keeps them when their maker has ended.
 */
void exported_pieces(bool healthy);
/* A legacy IPC handle is asked of virtual memory: the program ends with 1. */
void ipc_of_pieces(bool healthy);

#endif
