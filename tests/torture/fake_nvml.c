/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libnvidia-ml that answers as FAKE_NVML says: "ok" (two processes: the traced
 * one, by FAKE_NVML_OWN, and process 4242 with 300 MiB), "no-init", "no-device",
 * "no-query", "hang" (a query never comes back).
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
enum { SUCCESS = 0, NOT_FOUND = 6, UNKNOWN = 999 };

struct process_info {
    unsigned pid;
    unsigned long long used_bytes;
    unsigned gpu_instance, compute_instance;
};

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, void **device);
EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count,
                                                   struct process_info *infos);

static int is(const char *behaviour)
{
    const char *wanted = getenv("FAKE_NVML");
    return wanted && strcmp(wanted, behaviour) == 0;
}

int nvmlInit_v2(void)
{
    return is("no-init") ? UNKNOWN : SUCCESS;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **device)
{
    static char handle;
    *device = &handle;
    return is("no-device") || strcmp(uuid, "GPU-abababab-abab-abab-abab-abababababab") != 0
               ? NOT_FOUND
               : SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count,
                                            struct process_info *infos)
{
    const char *own = getenv("FAKE_NVML_OWN");
    (void)device;
    if (is("no-query"))
        return UNKNOWN;
    while (is("hang"))
        pause();
    infos[0] = (struct process_info){(unsigned)atoi(own ? own : "0"), 100ULL << 20, ~0U, ~0U};
    infos[1] = (struct process_info){4242, 300ULL << 20, ~0U, ~0U};
    *count = 2;
    return SUCCESS;
}
