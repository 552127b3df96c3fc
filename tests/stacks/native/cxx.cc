/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks that C++ makes: exceptions in flight, destructors, callbacks through its library. */
#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

extern "C" unsigned compare_here(void); // compare.h is C

#define NOINLINE __attribute__((noinline))

namespace
{
volatile int sink;

struct Watcher {
    explicit Watcher(int d) : depth(d)
    {
    }
    NOINLINE ~Watcher()
    {
        sink = static_cast<int>(compare_here()) + depth; /* in flight, or not */
    }
    int depth;
};

NOINLINE int thrower(int depth)
{
    Watcher watcher(depth);
    std::string text(static_cast<size_t>(depth) + 1, 'x');
    if (depth == 0) {
        throw std::runtime_error(text);
    }
    int result = thrower(depth - 1);
    __asm__ volatile("");
    return result + static_cast<int>(text.size());
}

NOINLINE int catcher(int depth)
{
    try {
        return thrower(depth);
    } catch (const std::runtime_error &error) {
        sink = static_cast<int>(compare_here());
        return static_cast<int>(std::string(error.what()).size());
    }
}

struct Base {
    virtual ~Base() = default;
    virtual int visit(int depth) = 0;
};

struct Derived : Base {
    NOINLINE int visit(int depth) override
    {
        std::function<int(int)> next = [this](int d) {
            return d == 0 ? static_cast<int>(compare_here()) : visit(d - 1);
        };
        int result = next(depth);
        __asm__ volatile("");
        return result;
    }
};

NOINLINE void sorts()
{
    std::vector<int> values{5, 3, 9, 1, 7, 2, 8};
    std::stable_sort(values.begin(), values.end(), [](int a, int b) {
        if (a == 3 || b == 3) {
            sink = static_cast<int>(compare_here());
        }
        return a < b;
    });
}
} // namespace

extern "C" void cxx_scenes()
{
    for (int depth = 0; depth < 6; depth++) {
        sink = catcher(depth);
        Derived derived;
        Base *base = &derived;
        sink = base->visit(depth);
    }
    sorts();
    std::thread([] { sink = static_cast<int>(compare_here()) + catcher(2); }).join();
}
