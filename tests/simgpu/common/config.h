/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the simulated devices are: sizes, costs and injections, read once from the SIMGPU_*
 * environment that scripts/simgpu sets. Shared by the driver, NVML and the books reader, so that
 * all of them describe the same machine.
 */
#ifndef SIMGPU_COMMON_CONFIG_H
#define SIMGPU_COMMON_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIMGPU_MAX_DEVICES 16
#define SIMGPU_MAX_OTHERS 16
#define SIMGPU_CHUNK ((uint64_t)2 << 20) /* physical granularity of a device */

/* Memory that a process outside this simulation takes on a device at a given time. */
struct simgpu_other {
    uint64_t bytes;
    uint64_t after_ns; /* since SIMGPU_START_NS */
    int32_t pid;
    int32_t device;
};

struct simgpu_config {
    unsigned device_count;
    uint64_t memory_bytes;        /* per device */
    uint64_t context_bytes;       /* per process and device, on first use */
    uint64_t module_bytes;        /* per loaded module */
    uint64_t graph_node_bytes;    /* per node of an instantiated graph */
    uint64_t stream_bytes;        /* per created stream */
    uint64_t address_space_bytes; /* limit of all address reservations; 0 = none */
    uint64_t start_ns;            /* CLOCK_REALTIME at scripts/simgpu's start; 0 = first use */
    int driver_version;
    bool integrated;
    unsigned other_count;
    struct simgpu_other others[SIMGPU_MAX_OTHERS];
};

/* Reads SIZE ("4096", "300M", "80GiB") into *bytes. Returns 0 or -EINVAL. */
int simgpu_parse_size(const char *text, uint64_t *bytes);

/* Reads DURATION ("250", "10us", "5ms", "2s"; a bare number is milliseconds) into *ns. Returns 0 or
 * -EINVAL. */
int simgpu_parse_duration(const char *text, uint64_t *ns);

/* The configuration of this process, read on first use; a wrong value is reported once on stderr
 * and the default is used. Thread-safe. */
const struct simgpu_config *simgpu_config(void);

/* Identity of a device, the same in every library that shows it. */
void simgpu_device_uuid(unsigned device, uint8_t uuid[16]);
unsigned simgpu_device_pci_bus(unsigned device);

/* Maps visible ordinals to devices as CUDA_VISIBLE_DEVICES says (indices, UUID prefixes "GPU-…";
 * the list ends at the first entry that names no device). Returns how many are visible. */
unsigned simgpu_visible_devices(unsigned devices[SIMGPU_MAX_DEVICES]);

/* Bytes of host memory that the page cache holds, from /proc/meminfo; 0 if that cannot be read. */
uint64_t simgpu_page_cache_bytes(void);

#endif
