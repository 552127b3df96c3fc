/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How programs find entry points: cuGetProcAddress by base name, CUDA version and default-stream
 * flag. It finds itself too. Each table line is checked against the type CUDA's headers give for
 * that name and version.
 */
#include "driver.h"

#include <stdio.h>
#include <string.h>

#include <cudaTypedefs.h>

struct entry {
    const char *base;
    int version;
    bool per_thread;
    void (*function)(void);
};

typedef CUresult(CUDAAPI *PFN_cuProfilerStart_v4000)(void);
typedef CUresult(CUDAAPI *PFN_cuProfilerStop_v4000)(void);
typedef CUresult(CUDAAPI *PFN_cuGraphInstantiate_v12000)(CUgraphExec *, CUgraph,
                                                         unsigned long long);
CUresult CUDAAPI cuProfilerStart(void);
CUresult CUDAAPI cuProfilerStop(void);

/* Compile-time check only: each symbol has the type the headers give for its name and version. */
#define ENTRY(base, version, symbol)                                                          \
    static const PFN_##base##_v##version check_##symbol##_##version __attribute__((unused)) = \
        symbol;
#define ENTRY_PER_THREAD(base, version, symbol, suffix)                     \
    static const PFN_##base##_v##version##suffix check_##symbol##_##version \
        __attribute__((unused)) = symbol;
#include "entries.def"
#undef ENTRY
#undef ENTRY_PER_THREAD

static const struct entry entries[] = {
#define ENTRY(base, version, symbol) {#base, version, false, (void (*)(void))symbol},
#define ENTRY_PER_THREAD(base, version, symbol, suffix) \
    {#base, version, true, (void (*)(void))symbol},
#include "entries.def"
#undef ENTRY
#undef ENTRY_PER_THREAD
};

/* The newest variant not newer than VERSION. Names without a per-thread variant have only the one.
 */
static const struct entry *find_entry(const char *name, int version, bool per_thread, bool *known)
{
    const struct entry *best = NULL;
    *known = false;
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        const struct entry *entry = &entries[i];
        if (strcmp(entry->base, name) != 0)
            continue;
        *known = true;
        if (entry->version > version || (entry->per_thread && !per_thread))
            continue;
        bool better =
            !best || (entry->per_thread != best->per_thread ? entry->per_thread
                                                            : entry->version >= best->version);
        if (better)
            best = entry;
    }
    return best;
}

static CUresult get_address(const char *symbol, void **pfn, int version, cuuint64_t flags,
                            CUdriverProcAddressQueryResult *status)
{
    bool known = false;
    const cuuint64_t known_flags =
        CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    if (!symbol || !pfn || (flags & ~known_flags) || flags == known_flags)
        return CUDA_ERROR_INVALID_VALUE;
    bool per_thread = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    const struct entry *entry = find_entry(symbol, version, per_thread, &known);
    *pfn = NULL;
    if (entry)
        memcpy(pfn, &entry->function, sizeof *pfn);
    if (status)
        *status = entry   ? CU_GET_PROC_ADDRESS_SUCCESS
                  : known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                          : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    if (!known && *symbol && sim_tracing())
        fprintf(stderr, "simgpu: cuGetProcAddress: no entry point %s\n", symbol);
    return entry ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult CUDAAPI cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion,
                                     cuuint64_t flags, CUdriverProcAddressQueryResult *symbolStatus)
{
    return get_address(symbol, pfn, cudaVersion, flags, symbolStatus);
}

CUresult CUDAAPI cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags)
{
    return get_address(symbol, pfn, cudaVersion, flags, NULL);
}

/* The private tables of NVIDIA's own libraries are not simulated. */
CUresult CUDAAPI cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId)
{
    if (!ppExportTable || !pExportTableId)
        return CUDA_ERROR_INVALID_VALUE;
    *ppExportTable = NULL;
    return CUDA_ERROR_NOT_FOUND;
}
