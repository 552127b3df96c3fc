/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oneflow_user LIBRARY: builds OneFlow's caching allocator over the device and another
 * over the host, gives both the same load, and prints what the report must say of the
 * device as JSON. Ends with 1 when a call does not do what it should.
 */
#include "oneflow_library.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <vector>

using namespace oneflow;

namespace
{

const char constructor_name[] =
    "_ZN7oneflow2vm12BinAllocatorINS0_14ThreadSafeLockEEC1EmOSt10unique_ptrINS0_9AllocatorESt14"
    "default_deleteIS5_EE";
const std::size_t object_bytes = 4096; /* more than either library's object takes */
const std::size_t alignment = 512;

std::size_t taken_bytes; /* from the device, now */

class Device : public vm::Allocator
{
  public:
    Maybe<void> Allocate(char **out, std::size_t bytes) override
    {
        void *memory = nullptr;
        bool good = cudaMalloc(&memory, bytes) == cudaSuccess;
        *out = good ? static_cast<char *>(memory) : nullptr;
        taken_bytes += good ? bytes : 0;
        return Maybe<void>{true, {}};
    }
    void Deallocate(char *address, std::size_t bytes) override
    {
        taken_bytes -= cudaFree(address) == cudaSuccess ? bytes : 0;
    }
    void DeviceReset() override
    {
    }
};

class Host : public vm::Allocator
{
  public:
    Maybe<void> Allocate(char **out, std::size_t bytes) override
    {
        *out = static_cast<char *>(::aligned_alloc(4096, bytes));
        return Maybe<void>{true, {}};
    }
    void Deallocate(char *address, std::size_t) override
    {
        std::free(address);
    }
    void DeviceReset() override
    {
    }
};

struct Block {
    char *address;
    std::size_t bytes;
};

struct Load {
    vm::ShrinkableCache *cache;
    std::vector<Block> blocks;
    std::size_t live_bytes, peak_bytes;
    std::uint64_t allocations, seed;
};

vm::ShrinkableCache *build(void *library, vm::Allocator *backend)
{
    using Constructor = void(void *, std::size_t, std::unique_ptr<vm::Allocator> *);
    auto *constructor = reinterpret_cast<Constructor *>(dlsym(library, constructor_name));
    void *object = std::calloc(1, object_bytes);
    std::unique_ptr<vm::Allocator> owned(backend);
    if (constructor == nullptr || object == nullptr) {
        std::exit(1);
    }
    constructor(object, alignment, &owned);
    return static_cast<vm::ShrinkableCache *>(object);
}

std::uint64_t next_random(Load &load)
{
    load.seed = load.seed * 6364136223846793005U + 1442695040888963407U;
    return load.seed >> 33;
}

__attribute__((noinline)) void allocate(Load &load)
{
    /* From 1 byte to 32 MiB, small ones more often. */
    std::size_t bytes = 1 + next_random(load) % (std::size_t{1} << (4 + next_random(load) % 22));
    Block block = {nullptr, bytes};
    if (!load.cache->Allocate(&block.address, bytes).is_good || block.address == nullptr) {
        std::exit(1);
    }
    load.blocks.push_back(block);
    load.allocations++;
    load.live_bytes += bytes;
    load.peak_bytes = load.live_bytes > load.peak_bytes ? load.live_bytes : load.peak_bytes;
}

void give_back(Load &load)
{
    std::size_t which = next_random(load) % load.blocks.size();
    Block block = load.blocks[which];
    load.blocks[which] = load.blocks.back();
    load.blocks.pop_back();
    load.live_bytes -= block.bytes;
    load.cache->Deallocate(block.address, block.bytes);
}

void run(Load &load)
{
    for (int i = 0; i < 2000; i++) {
        if (load.blocks.size() < 20 || (load.blocks.size() < 60 && next_random(load) % 2 == 0)) {
            allocate(load);
        } else {
            give_back(load);
        }
    }
    load.cache->Shrink();
}

} // namespace

int main(int count, char **arguments)
{
    void *library = count == 2 ? dlopen(arguments[1], RTLD_LAZY | RTLD_LOCAL) : nullptr;
    if (library == nullptr) {
        std::fprintf(stderr, "%s\n", count == 2 ? dlerror() : "usage: oneflow_user LIBRARY");
        return 1;
    }
    if (cudaSetDevice(0) != cudaSuccess) { /* as OneFlow does before it makes an allocator */
        return 1;
    }
    Load device = {build(library, new Device), {}, 0, 0, 0, 1};
    Load host = {build(library, new Host), {}, 0, 0, 0, 1};
    run(device);
    run(host);
    char *none = reinterpret_cast<char *>(1);
    if (!device.cache->Allocate(&none, 0).is_good || none != nullptr) {
        return 1;
    }
    if (device.cache->Allocate(&none, std::size_t{200} << 30).is_good) {
        return 1;
    }
    std::printf("{\"live\": %zu, \"peak\": %zu, \"reserved\": %zu, \"allocations\": %llu, "
                "\"blocks\": %zu}\n",
                device.live_bytes, device.peak_bytes, taken_bytes,
                static_cast<unsigned long long>(device.allocations), device.blocks.size());
    std::fflush(stdout);
    _Exit(0);
}
