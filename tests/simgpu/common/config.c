/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the SIMGPU_* environment into one struct; see config.h. */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define DEFAULT_MEMORY ((uint64_t)80 << 30)
#define DEFAULT_CONTEXT ((uint64_t)300 << 20)
#define DEFAULT_DRIVER_VERSION 13020
#define UUID_TEXT_SIZE 41

static struct simgpu_config config;
static pthread_once_t config_once = PTHREAD_ONCE_INIT;

int simgpu_parse_size(const char *text, uint64_t *bytes)
{
    static const char units[] = "KMGT";
    char *end = NULL;
    errno = 0;
    double number = strtod(text, &end);
    if (end == text || errno || !(number >= 0))
        return -EINVAL;
    unsigned shift = 0;
    if (*end) {
        const char *unit = strchr(units, toupper((unsigned char)*end));
        if (unit) {
            shift = 10U * (unsigned)(unit - units + 1);
            end++;
        }
        if (*end == 'i')
            end++;
        if (*end == 'B' || *end == 'b')
            end++;
    }
    double scaled = number * (double)((uint64_t)1 << shift);
    if (*end || scaled >= 9e18)
        return -EINVAL;
    *bytes = (uint64_t)scaled;
    return 0;
}

int simgpu_parse_duration(const char *text, uint64_t *ns)
{
    static const struct {
        const char *suffix;
        double ns;
    } units[] = {{"", 1e6}, {"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    char *end = NULL;
    double number = strtod(text, &end);
    if (end == text || !(number >= 0))
        return -EINVAL;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(end, units[i].suffix) == 0 && number * units[i].ns < 9e18) {
            *ns = (uint64_t)(number * units[i].ns);
            return 0;
        }
    }
    return -EINVAL;
}

static void read_size(const char *variable, uint64_t *bytes)
{
    const char *text = getenv(variable);
    if (text && *text && simgpu_parse_size(text, bytes))
        fprintf(stderr, "simgpu: %s='%s' is not a size (like 300M or 80GiB)\n", variable, text);
}

static uint64_t read_number(const char *variable, uint64_t fallback)
{
    const char *text = getenv(variable);
    return text && *text ? strtoull(text, NULL, 10) : fallback;
}

/* One SIZE@TIME[:PID][/DEVICE]. */
static int parse_other(const char *text, struct simgpu_other *other)
{
    char copy[128];
    if (snprintf(copy, sizeof copy, "%s", text) >= (int)sizeof copy)
        return -EINVAL;
    char *at = strchr(copy, '@');
    if (!at)
        return -EINVAL;
    *at++ = '\0';
    char *device = strchr(at, '/');
    if (device)
        *device++ = '\0';
    char *pid = strchr(at, ':');
    if (pid)
        *pid++ = '\0';
    other->device = device ? atoi(device) : 0;
    other->pid = pid ? atoi(pid) : 0;
    if (other->device < 0 || other->device >= SIMGPU_MAX_DEVICES)
        return -EINVAL;
    if (simgpu_parse_size(copy, &other->bytes))
        return -EINVAL;
    return simgpu_parse_duration(at, &other->after_ns);
}

static void read_others(void)
{
    const char *text = getenv("SIMGPU_OTHER");
    char *copy = text ? strdup(text) : NULL;
    char *rest = copy;
    for (char *item; rest && (item = strsep(&rest, ",")) != NULL;) {
        if (!*item)
            continue;
        if (config.other_count == SIMGPU_MAX_OTHERS ||
            parse_other(item, &config.others[config.other_count]))
            fprintf(stderr, "simgpu: other use '%s' is not SIZE@TIME[:PID][/DEVICE]\n", item);
        else
            config.other_count++;
    }
    free(copy);
}

static void read_config(void)
{
    config.device_count = (unsigned)read_number("SIMGPU_DEVICES", 1);
    if (config.device_count > SIMGPU_MAX_DEVICES)
        config.device_count = SIMGPU_MAX_DEVICES;
    config.memory_bytes = DEFAULT_MEMORY;
    config.context_bytes = DEFAULT_CONTEXT;
    read_size("SIMGPU_MEMORY", &config.memory_bytes);
    read_size("SIMGPU_CONTEXT", &config.context_bytes);
    read_size("SIMGPU_MODULE", &config.module_bytes);
    read_size("SIMGPU_GRAPH_NODE", &config.graph_node_bytes);
    read_size("SIMGPU_STREAM", &config.stream_bytes);
    read_size("SIMGPU_ADDRESS_SPACE", &config.address_space_bytes);
    config.start_ns = read_number("SIMGPU_START_NS", 0);
    config.driver_version = (int)read_number("SIMGPU_DRIVER_VERSION", DEFAULT_DRIVER_VERSION);
    config.integrated = read_number("SIMGPU_INTEGRATED", 0) != 0;
    read_others();
}

const struct simgpu_config *simgpu_config(void)
{
    pthread_once(&config_once, read_config);
    return &config;
}

void simgpu_device_uuid(unsigned device, uint8_t uuid[16])
{
    static const uint8_t base[16] = {0x5e, 0xd1, 0x6e, 0x70, 0x00, 0x01, 0x4a, 0x10,
                                     0x80, 0x00, 0x76, 0x72, 0x61, 0x6d, 0x73, 0x00};
    memcpy(uuid, base, 16);
    uuid[15] = (uint8_t)(device + 1);
}

unsigned simgpu_device_pci_bus(unsigned device)
{
    return 0x10U + device;
}

static void uuid_text(unsigned device, char text[UUID_TEXT_SIZE])
{
    uint8_t u[16];
    simgpu_device_uuid(device, u);
    snprintf(text, UUID_TEXT_SIZE,
             "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1],
             u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14],
             u[15]);
}

/* The device an entry of CUDA_VISIBLE_DEVICES names, or -1. */
static int named_device(const char *item)
{
    unsigned count = simgpu_config()->device_count;
    if (strncasecmp(item, "GPU-", 4) == 0) {
        int found = -1;
        for (unsigned i = 0; i < count; i++) {
            char text[UUID_TEXT_SIZE];
            uuid_text(i, text);
            if (strncasecmp(text, item, strlen(item)) == 0) {
                if (found >= 0)
                    return -1; /* the prefix does not tell them apart */
                found = (int)i;
            }
        }
        return found;
    }
    char *end = NULL;
    long index = strtol(item, &end, 10);
    return end != item && index >= 0 && index < (long)count ? (int)index : -1;
}

unsigned simgpu_visible_devices(unsigned devices[SIMGPU_MAX_DEVICES])
{
    const char *text = getenv("CUDA_VISIBLE_DEVICES");
    unsigned visible = 0;
    if (!text) {
        for (; visible < simgpu_config()->device_count; visible++)
            devices[visible] = visible;
        return visible;
    }
    char *copy = strdup(text);
    char *rest = copy;
    for (char *item; rest && (item = strsep(&rest, ",")) != NULL;) {
        int device = named_device(item + strspn(item, " "));
        if (device < 0 || visible == SIMGPU_MAX_DEVICES)
            break;
        for (unsigned i = 0; i < visible; i++) {
            if (devices[i] == (unsigned)device) { /* named twice: no device at all, as documented */
                free(copy);
                return 0;
            }
        }
        devices[visible++] = (unsigned)device;
    }
    free(copy);
    return visible;
}

uint64_t simgpu_page_cache_bytes(void)
{
    FILE *meminfo = fopen("/proc/meminfo", "re");
    if (!meminfo)
        return 0;
    char line[128];
    uint64_t cached = 0;
    uint64_t shared = 0;
    while (fgets(line, sizeof line, meminfo)) {
        uint64_t kib = 0;
        if (sscanf(line, "Cached: %lu kB", &kib) == 1 || sscanf(line, "Buffers: %lu kB", &kib) == 1)
            cached += kib << 10;
        else if (sscanf(line, "Shmem: %lu kB", &kib) == 1)
            shared = kib << 10;
    }
    fclose(meminfo);
    return cached > shared ? cached - shared : 0;
}
