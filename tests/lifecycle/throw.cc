// SPDX-License-Identifier: Apache-2.0
// C++ exceptions through many frames, timed: a preload that puts an unwinder into
// the global scope makes every throw many times slower. throw_time.c opens this.
#include <ctime>
#include <stdexcept>

namespace
{
constexpr int frames = 20;

__attribute__((noinline)) int down(int depth)
{
    if (depth == 0)
        throw std::runtime_error("end of the line");
    return down(depth - 1) + 1; // not a tail call
}

double now_ns()
{
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}
} // namespace

extern "C" double throw_ns(int rounds)
{
    int caught = 0;
    double begin = now_ns();
    for (int i = 0; i < rounds; i++) {
        try {
            caught += down(frames);
        } catch (const std::runtime_error &) {
            caught++;
        }
    }
    return (now_ns() - begin) / caught;
}
