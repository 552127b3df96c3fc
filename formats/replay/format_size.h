/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes and times for people: KiB, MiB, GiB; µs, ms, s. */
#ifndef VS_REPLAY_FORMAT_SIZE_H
#define VS_REPLAY_FORMAT_SIZE_H

#include <stdint.h>

struct vs_size_text {
    char text[24];
};

/* "512 B", "1.50 KiB", "24.0 GiB": three digits that count; the sign is kept. */
struct vs_size_text vs_format_size(int64_t bytes);
/* "250 ns", "1.20 ms", "3.21 s", "2 h 05 min". */
struct vs_size_text vs_format_time(uint64_t ns);

#endif
