/* SPDX-License-Identifier: Apache-2.0 */
/* The books for tests in the same process, found with dlsym; see books.h. */
#include "books.h"

#include <stdio.h>
#include <stdlib.h>

#include "driver.h"

uint64_t simgpu_device_used(int device)
{
    if (simgpu_state_attach(false) || device < 0 ||
        (unsigned)device >= simgpu_config()->device_count)
        return UINT64_MAX;
    return simgpu_state_used((unsigned)device);
}

uint64_t simgpu_device_total(int device)
{
    return device >= 0 && (unsigned)device < simgpu_config()->device_count
               ? simgpu_config()->memory_bytes
               : UINT64_MAX;
}

bool simgpu_device_user(int device, unsigned index, int32_t *pid, uint64_t *bytes)
{
    if (simgpu_state_attach(false) || device < 0 ||
        (unsigned)device >= simgpu_config()->device_count)
        return false;
    return simgpu_state_user((unsigned)device, index, pid, bytes);
}

size_t simgpu_books_json(char *buffer, size_t size)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = simgpu_state_attach(false) ? NULL : open_memstream(&text, &length);
    if (!out)
        return 0;
    simgpu_state_print(out, true, sim_call_text);
    fclose(out);
    if (size)
        snprintf(buffer, size, "%s", text);
    free(text);
    return length;
}
