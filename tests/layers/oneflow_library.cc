/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exports OneFlow's caching allocator under its own names, as small as the tests
 * need it: blocks of 2 MiB, 20 MiB or whole multiples of 2 MiB from a backend, cut
 * into pieces, first fit, free neighbours merged.
 */
#include "oneflow_library.h"

#include <map>
#include <mutex>

namespace oneflow
{
namespace vm
{

class ThreadSafeLock
{
  public:
    std::mutex mutex;
};

template <typename Lock> class BinAllocator : public ShrinkableCache
{
  public:
    BinAllocator(std::size_t alignment, std::unique_ptr<Allocator> &&backend);
    ~BinAllocator() override = default;
    Maybe<void> Allocate(char **out, std::size_t bytes) override;
    void Deallocate(char *address, std::size_t bytes) override;
    void DeviceReset() override
    {
        backend_->DeviceReset();
    }
    void Shrink() override;

  private:
    struct Piece {
        std::size_t bytes;
        bool free;
        char *block;
    };

    /* Called through the symbol, as in the real library. */
    __attribute__((noinline)) Maybe<bool> AllocateBlockToExtendTotalMem(std::size_t bytes);
    bool DeallocateFreeBlockForGarbageCollection();
    char *Take(std::size_t bytes);

    Lock lock_;
    std::size_t alignment_;
    std::unique_ptr<Allocator> backend_;
    std::map<char *, Piece> pieces_;
    std::map<char *, std::size_t> blocks_;
};

template <typename Lock>
BinAllocator<Lock>::BinAllocator(std::size_t alignment, std::unique_ptr<Allocator> &&backend)
    : alignment_(alignment), backend_(std::move(backend))
{
}

/* A piece is cut when what is left is worth it. */
template <typename Lock> char *BinAllocator<Lock>::Take(std::size_t bytes)
{
    for (auto &entry : pieces_) {
        Piece &piece = entry.second;
        if (!piece.free || piece.bytes < bytes) {
            continue;
        }
        if (piece.bytes >= 2 * bytes || piece.bytes - bytes >= (std::size_t{128} << 20)) {
            pieces_[entry.first + bytes] = Piece{piece.bytes - bytes, true, piece.block};
            piece.bytes = bytes;
        }
        piece.free = false;
        return entry.first;
    }
    return nullptr;
}

template <typename Lock>
Maybe<bool> BinAllocator<Lock>::AllocateBlockToExtendTotalMem(std::size_t bytes)
{
    const std::size_t mib = std::size_t{1} << 20;
    std::size_t wanted = bytes < mib        ? 2 * mib
                         : bytes < 10 * mib ? 20 * mib
                                            : (bytes + 2 * mib - 1) / (2 * mib) * (2 * mib);
    char *block = nullptr;
    Maybe<void> result = backend_->Allocate(&block, wanted);
    if (!result.is_good || block == nullptr) {
        return Maybe<bool>{false, {}};
    }
    blocks_[block] = wanted;
    pieces_[block] = Piece{wanted, true, block};
    return Maybe<bool>{true, {}};
}

template <typename Lock> Maybe<void> BinAllocator<Lock>::Allocate(char **out, std::size_t bytes)
{
    std::lock_guard<std::mutex> guard(lock_.mutex);
    *out = nullptr;
    if (bytes == 0) {
        return Maybe<void>{true, {}};
    }
    std::size_t aligned = (bytes + alignment_ - 1) / alignment_ * alignment_;
    *out = Take(aligned);
    if (*out == nullptr) {
        Maybe<bool> extended = AllocateBlockToExtendTotalMem(aligned);
        if (!extended.is_good && DeallocateFreeBlockForGarbageCollection()) {
            extended = AllocateBlockToExtendTotalMem(aligned);
        }
        if (!extended.is_good) {
            return Maybe<void>{false, {}};
        }
        *out = Take(aligned);
    }
    return Maybe<void>{true, {}};
}

template <typename Lock> void BinAllocator<Lock>::Deallocate(char *address, std::size_t)
{
    std::lock_guard<std::mutex> guard(lock_.mutex);
    auto at = pieces_.find(address);
    if (address == nullptr || at == pieces_.end()) {
        return;
    }
    at->second.free = true;
    auto next = std::next(at);
    if (next != pieces_.end() && next->second.free && next->second.block == at->second.block) {
        at->second.bytes += next->second.bytes;
        pieces_.erase(next);
    }
    if (at != pieces_.begin()) {
        auto before = std::prev(at);
        if (before->second.free && before->second.block == at->second.block) {
            before->second.bytes += at->second.bytes;
            pieces_.erase(at);
        }
    }
}

template <typename Lock> bool BinAllocator<Lock>::DeallocateFreeBlockForGarbageCollection()
{
    bool any = false;
    for (auto block = blocks_.begin(); block != blocks_.end();) {
        auto piece = pieces_.find(block->first);
        if (piece->second.free && piece->second.bytes == block->second) {
            backend_->Deallocate(block->first, block->second);
            pieces_.erase(piece);
            block = blocks_.erase(block);
            any = true;
        } else {
            ++block;
        }
    }
    return any;
}

template <typename Lock> void BinAllocator<Lock>::Shrink()
{
    std::lock_guard<std::mutex> guard(lock_.mutex);
    DeallocateFreeBlockForGarbageCollection();
}

template class BinAllocator<ThreadSafeLock>;

} // namespace vm
} // namespace oneflow
