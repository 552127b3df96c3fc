/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of OneFlow 0.9's allocators that oneflow_library.cc has and oneflow_user.cc
 * uses: names and order of the virtual functions are OneFlow's, for both are also used
 * with the real one.
 */
#ifndef VS_TESTS_ONEFLOW_LIBRARY_H
#define VS_TESTS_ONEFLOW_LIBRARY_H

#include <cstddef>
#include <memory>

namespace oneflow
{

/*
 * Returned through a hidden pointer; the first byte is 1 on success. Else a shared
 * pointer to the error follows, which is left alone here.
 */
template <typename T> struct Maybe {
    bool is_good;
    void *error[2];
};

namespace vm
{

class Allocator
{
  public:
    virtual ~Allocator() = default;
    virtual Maybe<void> Allocate(char **out, std::size_t bytes) = 0;
    virtual void Deallocate(char *address, std::size_t bytes) = 0;
    virtual void DeviceReset() = 0;
};

class ShrinkableCache : public Allocator
{
  public:
    virtual void Shrink() = 0;
};

} // namespace vm
} // namespace oneflow

#endif
