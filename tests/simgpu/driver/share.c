/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Physical memory between processes, by file descriptor. The exported descriptor opens the
 * exporter's arena anew; its file position is the memory's number in the shared state, which knows
 * place, size, holders and who pays.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vmm.h"

#define LOWEST_FILE_FD 600

/* Arenas of other processes that memory was imported from; kept open, one descriptor each. */
struct known_file {
    dev_t device;
    ino_t inode;
    int fd;
    struct known_file *next;
};

static struct known_file *known_files;

int sim_known_file(int fd)
{
    struct stat status;
    if (fstat(fd, &status))
        return -1;
    for (const struct known_file *file = known_files; file; file = file->next)
        if (file->device == status.st_dev && file->inode == status.st_ino)
            return file->fd;
    struct known_file *file = malloc(sizeof *file);
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, LOWEST_FILE_FD);
    if (copy < 0)
        copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (!file || copy < 0) {
        free(file);
        return -1;
    }
    *file = (struct known_file){status.st_dev, status.st_ino, copy, known_files};
    known_files = file;
    return copy;
}

static int export_descriptor(uint64_t id)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", sim.arena_fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0 && lseek(fd, (off_t)id, SEEK_SET) < 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

CUresult CUDAAPI cuMemExportToShareableHandle(void *shareableHandle,
                                              CUmemGenericAllocationHandle handle,
                                              CUmemAllocationHandleType handleType,
                                              unsigned long long flags)
{
    SIM_ENTER(cuMemExportToShareableHandle, 0);
    if (!shareableHandle || flags)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock();
    struct sim_physical *physical = sim_physical_of(handle);
    if (!physical || !(physical->properties.requestedHandleTypes & handleType) ||
        handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return sim_leave(CUDA_ERROR_INVALID_VALUE);
    if (physical->ordinal < 0) /* host and multicast memory is not shared between processes here */
        return sim_leave(CUDA_ERROR_NOT_SUPPORTED);
    if (!physical->export_id)
        physical->export_id = simgpu_state_publish(sim_machine_index((unsigned)physical->ordinal),
                                                   physical->offset, physical->bytes);
    int fd = physical->export_id ? export_descriptor(physical->export_id) : -1;
    if (fd >= 0)
        *(int *)shareableHandle = fd;
    return sim_leave(fd >= 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM);
}

static struct sim_physical *find_export(uint64_t id)
{
    struct sim_node *node = sim_tree_ceiling(&sim.objects, 0);
    while (node) {
        struct sim_physical *physical = sim_object_find((void *)(uintptr_t)node->key, SIM_PHYSICAL);
        if (physical && physical->export_id == id)
            return physical;
        node = sim_tree_ceiling(&sim.objects, node->key + 1);
    }
    return NULL;
}

static int ordinal_of_machine_index(int index)
{
    for (unsigned i = 0; i < sim.visible_count; i++)
        if ((int)sim.visible[i] == index)
            return (int)i;
    return -1;
}

static struct sim_physical *import(const struct simgpu_export *entry, int ordinal, int fd)
{
    struct sim_physical *physical = sim_object_new(SIM_PHYSICAL, sizeof *physical);
    if (!physical)
        return NULL;
    physical->properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    physical->properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    physical->properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    physical->properties.location.id = ordinal;
    physical->ordinal = ordinal;
    physical->bytes = entry->bytes;
    physical->fd = fd;
    physical->offset = entry->offset;
    physical->export_id = entry->id;
    physical->is_imported = true;
    physical->record = simgpu_state_record(SIMGPU_IMPORT, entry->device,
                                           (uint64_t)(uintptr_t)physical, entry->bytes);
    return physical;
}

CUresult CUDAAPI cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle,
                                                void *osHandle,
                                                CUmemAllocationHandleType shHandleType)
{
    SIM_ENTER(cuMemImportFromShareableHandle, 0);
    if (!handle || shHandleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;
    int fd = (int)(intptr_t)osHandle;
    struct simgpu_export entry;
    sim_lock();
    off_t id = lseek(fd, 0, SEEK_CUR);
    bool is_memory = id > 0 && fcntl(fd, F_GET_SEALS) >= 0;
    struct sim_physical *physical = is_memory ? find_export((uint64_t)id) : NULL;
    if (!physical) {
        int joined = is_memory ? simgpu_state_join((uint64_t)id, &entry) : -1;
        if (joined)
            return sim_leave(joined == -ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY
                                               : CUDA_ERROR_INVALID_VALUE);
        int ordinal = ordinal_of_machine_index(entry.device);
        int file = sim_known_file(fd);
        if (ordinal >= 0 && file >= 0)
            physical = import(&entry, ordinal, file);
        if (!physical) {
            simgpu_state_leave((uint64_t)id);
            return sim_leave(ordinal < 0 ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_OUT_OF_MEMORY);
        }
    }
    physical->handles++;
    *handle = (CUmemGenericAllocationHandle)(uintptr_t)physical;
    return sim_leave(CUDA_SUCCESS);
}
