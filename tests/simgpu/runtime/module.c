/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the compiler's start-up code registers: fat binaries, kernels and device
 * variables, each known by the address of a host object. A fat binary is given
 * to the driver by the first use of something in it, as cudart does, so that
 * loading a framework with tens of thousands of kernels costs nothing.
 */
#include "runtime.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct entry;

struct fat_binary {
    void *image;       /* the wrapper the compiler passed */
    CUlibrary library; /* NULL until first use */
    bool unregistered; /* its names may be unmapped: never looked at again */
    struct entry *variables;
};

struct entry {
    const void *host;          /* the key; NULL for a free slot */
    struct fat_binary *binary; /* NULL for a kernel handle given to us */
    const char *name;
    CUkernel kernel;
    size_t size;                 /* of a variable; 0 for a kernel */
    void **managed;              /* host pointer to fill, for a managed variable */
    struct entry *next_variable; /* of the same binary */
    struct copies *copies;       /* of a variable the driver does not know */
};

/* A device variable's memory, one a device. */
struct copies {
    CUdeviceptr address[SIMRT_MAX_DEVICES];
    unsigned resets[SIMRT_MAX_DEVICES]; /* simrt.reset_count when it was made */
};

/* Entries never move: the table holds pointers, so it can grow. */
static struct {
    struct entry **slots;
    size_t capacity, used;
    pthread_mutex_t lock;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

static size_t slot_of(const void *host, size_t capacity)
{
    uint64_t mixed = ((uint64_t)(uintptr_t)host >> 3) * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(mixed >> 20) & (capacity - 1);
}

static struct entry **find_slot(struct entry **slots, size_t capacity, const void *host)
{
    size_t i = slot_of(host, capacity);
    while (slots[i] && slots[i]->host != host)
        i = (i + 1) & (capacity - 1);
    return &slots[i];
}

static bool grow(void)
{
    size_t capacity = table.capacity ? table.capacity * 2 : 1024;
    struct entry **slots = calloc(capacity, sizeof(*slots));
    if (!slots)
        return false;
    for (size_t i = 0; i < table.capacity; i++)
        if (table.slots[i])
            *find_slot(slots, capacity, table.slots[i]->host) = table.slots[i];
    free(table.slots);
    table.slots = slots;
    table.capacity = capacity;
    return true;
}

/* The entry of a host address, made if new; NULL when memory is short. Caller holds the lock. */
static struct entry *intern(const void *host)
{
    if (table.used * 2 >= table.capacity && !grow())
        return NULL;
    struct entry **slot = find_slot(table.slots, table.capacity, host);
    if (!*slot) {
        *slot = calloc(1, sizeof(**slot));
        if (*slot)
            table.used++;
    }
    if (*slot)
        **slot = (struct entry){.host = host};
    return *slot;
}

static struct entry *look_up(const void *host)
{
    struct entry *entry = NULL;
    pthread_mutex_lock(&table.lock);
    if (table.capacity)
        entry = *find_slot(table.slots, table.capacity, host);
    if (entry && entry->binary && entry->binary->unregistered)
        entry = NULL;
    pthread_mutex_unlock(&table.lock);
    return entry;
}

void **__cudaRegisterFatBinary(void *fatCubin);
void **__cudaRegisterFatBinary(void *fatCubin)
{
    struct fat_binary *binary = calloc(1, sizeof(*binary));
    if (binary)
        binary->image = fatCubin;
    return (void **)binary;
}

void __cudaRegisterFatBinaryEnd(void **fatCubinHandle);
void __cudaRegisterFatBinaryEnd(void **fatCubinHandle)
{
    (void)fatCubinHandle;
}

/* Gives back the memory of a variable whose code goes. Caller holds the lock. */
static void drop_copies(struct entry *entry)
{
    unsigned now = __atomic_load_n(&simrt.reset_count, __ATOMIC_ACQUIRE);
    for (int i = 0; entry->copies && i < simrt.device_count; i++)
        if (entry->copies->address[i] && entry->copies->resets[i] == now)
            (void)DRV(MemFree, entry->copies->address[i]);
    free(entry->copies);
    entry->copies = NULL;
}

/* The record outlives its library: entries point to it. */
void __cudaUnregisterFatBinary(void **fatCubinHandle);
void __cudaUnregisterFatBinary(void **fatCubinHandle)
{
    struct fat_binary *binary = (struct fat_binary *)fatCubinHandle;
    if (!binary)
        return;
    pthread_mutex_lock(&table.lock);
    CUlibrary library = binary->library;
    binary->library = NULL;
    binary->unregistered = true;
    for (struct entry *entry = binary->variables; entry; entry = entry->next_variable)
        drop_copies(entry);
    binary->variables = NULL;
    pthread_mutex_unlock(&table.lock);
    if (library)
        (void)DRV(LibraryUnload, library);
}

static void register_entry(void **handle, const void *host, const char *name, size_t size,
                           void **managed)
{
    struct fat_binary *binary = (struct fat_binary *)handle;
    pthread_mutex_lock(&table.lock);
    struct entry *entry = binary ? intern(host) : NULL;
    if (entry) {
        entry->binary = binary;
        entry->name = name;
        entry->size = size;
        entry->managed = managed;
        if (size) {
            entry->next_variable = binary->variables;
            binary->variables = entry;
        }
    }
    pthread_mutex_unlock(&table.lock);
}

void __cudaRegisterFunction(void **fatCubinHandle, const char *hostFun, char *deviceFun,
                            const char *deviceName, int thread_limit, void *tid, void *bid,
                            void *bDim, void *gDim, int *wSize);
void __cudaRegisterFunction(void **fatCubinHandle, const char *hostFun, char *deviceFun,
                            const char *deviceName, int thread_limit, void *tid, void *bid,
                            void *bDim, void *gDim, int *wSize)
{
    (void)deviceFun, (void)thread_limit, (void)tid, (void)bid;
    (void)bDim, (void)gDim, (void)wSize;
    register_entry(fatCubinHandle, hostFun, deviceName, 0, NULL);
}

void __cudaRegisterVar(void **fatCubinHandle, char *hostVar, char *deviceAddress,
                       const char *deviceName, int ext, size_t size, int constant, int global);
void __cudaRegisterVar(void **fatCubinHandle, char *hostVar, char *deviceAddress,
                       const char *deviceName, int ext, size_t size, int constant, int global)
{
    (void)deviceAddress, (void)ext, (void)constant, (void)global;
    register_entry(fatCubinHandle, hostVar, deviceName, size, NULL);
}

void __cudaRegisterHostVar(void **fatCubinHandle, const char *deviceName, char *hostVar,
                           size_t size);
void __cudaRegisterHostVar(void **fatCubinHandle, const char *deviceName, char *hostVar,
                           size_t size)
{
    register_entry(fatCubinHandle, hostVar, deviceName, size, NULL);
}

void __cudaRegisterManagedVar(void **fatCubinHandle, void **hostVarPtrAddress, char *deviceAddress,
                              const char *deviceName, int ext, size_t size, int constant,
                              int global);
void __cudaRegisterManagedVar(void **fatCubinHandle, void **hostVarPtrAddress, char *deviceAddress,
                              const char *deviceName, int ext, size_t size, int constant,
                              int global)
{
    (void)deviceAddress, (void)ext, (void)constant, (void)global;
    register_entry(fatCubinHandle, hostVarPtrAddress, deviceName, size, hostVarPtrAddress);
}

/* The simulated driver does not parse images, so it knows no variables: they get
 * memory of their own by the first use, and keep it until the device is reset. */
static cudaError_t own_copy(struct entry *entry, CUdeviceptr *address)
{
    int device = 0;
    cudaError_t error = simrt_current_device(&device);
    if (error != cudaSuccess)
        return error;
    if (!entry->copies)
        entry->copies = calloc(1, sizeof(*entry->copies));
    if (!entry->copies)
        return cudaErrorMemoryAllocation;
    CUdeviceptr *copy = &entry->copies->address[entry->managed ? 0 : device];
    unsigned *resets = &entry->copies->resets[entry->managed ? 0 : device];
    unsigned now = __atomic_load_n(&simrt.reset_count, __ATOMIC_ACQUIRE);
    if (!*copy || *resets != now)
        error = entry->managed ? DRV(MemAllocManaged, copy, entry->size, CU_MEM_ATTACH_GLOBAL)
                               : DRV(MemAlloc, copy, entry->size);
    *resets = now;
    *address = error == cudaSuccess ? *copy : 0;
    return error;
}

/* Where a variable of a loaded library is. Caller holds the lock. */
static cudaError_t locate(struct entry *entry, CUdeviceptr *address, size_t *size)
{
    CUlibrary library = entry->binary->library;
    cudaError_t error = entry->managed ? DRV(LibraryGetManaged, address, size, library, entry->name)
                                       : DRV(LibraryGetGlobal, address, size, library, entry->name);
    if (error != cudaErrorSymbolNotFound)
        return error;
    *size = entry->size;
    return own_copy(entry, address);
}

static void fill_managed(const struct fat_binary *binary)
{
    for (struct entry *entry = binary->variables; entry; entry = entry->next_variable) {
        CUdeviceptr address = 0;
        size_t bytes = 0;
        if (entry->managed && locate(entry, &address, &bytes) == cudaSuccess)
            *entry->managed = (void *)address;
    }
}

/* Gives the fat binary to the driver if nobody has yet. */
static cudaError_t load(struct fat_binary *binary)
{
    pthread_mutex_lock(&table.lock);
    cudaError_t error = cudaSuccess;
    if (!binary->library) {
        error = DRV(LibraryLoadData, &binary->library, binary->image, NULL, NULL, 0, NULL, NULL, 0);
        if (error == cudaSuccess)
            fill_managed(binary);
        else
            binary->library = NULL;
    }
    pthread_mutex_unlock(&table.lock);
    return error;
}

char __cudaInitModule(void **fatCubinHandle);
char __cudaInitModule(void **fatCubinHandle)
{
    struct fat_binary *binary = (struct fat_binary *)fatCubinHandle;
    if (!binary || simrt_begin(__func__, 0) != cudaSuccess)
        return 0;
    return simrt_leave(load(binary)) == cudaSuccess;
}

cudaError_t simrt_kernel_of(const void *function, CUfunction *kernel)
{
    struct entry *entry = function ? look_up(function) : NULL;
    if (!entry || entry->size)
        return cudaErrorInvalidDeviceFunction;
    cudaError_t error = cudaSuccess;
    CUkernel known = __atomic_load_n(&entry->kernel, __ATOMIC_ACQUIRE);
    if (!known && entry->binary) {
        error = load(entry->binary);
        if (error == cudaSuccess)
            error = DRV(LibraryGetKernel, &known, entry->binary->library, entry->name);
        if (error == cudaSuccess)
            __atomic_store_n(&entry->kernel, known, __ATOMIC_RELEASE);
    }
    *kernel = (CUfunction)known;
    return error;
}

cudaError_t simrt_function_of(const void *function, CUfunction *function_out)
{
    CUfunction kernel = NULL;
    cudaError_t error = simrt_kernel_of(function, &kernel);
    return error == cudaSuccess ? DRV(KernelGetFunction, function_out, (CUkernel)kernel) : error;
}

cudaError_t simrt_remember_kernel(CUkernel kernel)
{
    if (look_up(kernel))
        return cudaSuccess; /* readers hold no lock: an entry in use never changes */
    pthread_mutex_lock(&table.lock);
    struct entry *entry = intern(kernel);
    if (entry)
        entry->kernel = kernel;
    pthread_mutex_unlock(&table.lock);
    return entry ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t simrt_symbol(const void *symbol, CUdeviceptr *address, size_t *size)
{
    struct entry *entry = symbol ? look_up(symbol) : NULL;
    if (!entry || !entry->size || !entry->binary)
        return cudaErrorInvalidSymbol;
    cudaError_t error = load(entry->binary);
    if (error != cudaSuccess)
        return error;
    pthread_mutex_lock(&table.lock);
    error = locate(entry, address, size);
    pthread_mutex_unlock(&table.lock);
    return error;
}

static cudaError_t symbol_address(void **pointer, const void *symbol)
{
    size_t size = 0;
    return pointer ? simrt_symbol(symbol, (CUdeviceptr *)pointer, &size) : cudaErrorInvalidValue;
}

cudaError_t cudaGetSymbolAddress(void **devPtr, const void *symbol);
cudaError_t cudaGetSymbolAddress(void **devPtr, const void *symbol)
{
    return RT_CALL(symbol_address(devPtr, symbol));
}

static cudaError_t symbol_size(size_t *size, const void *symbol)
{
    struct entry *entry = symbol ? look_up(symbol) : NULL;
    if (!size)
        return cudaErrorInvalidValue;
    if (!entry || !entry->size)
        return cudaErrorInvalidSymbol;
    *size = entry->size;
    return cudaSuccess;
}

cudaError_t cudaGetSymbolSize(size_t *size, const void *symbol);
cudaError_t cudaGetSymbolSize(size_t *size, const void *symbol)
{
    return RT_CALL(symbol_size(size, symbol));
}
