/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes and times for people. */
#include "format_size.h"

#include <inttypes.h>
#include <stdio.h>

static int decimals(double value)
{
    return value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
}

struct vs_size_text vs_format_size(int64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    struct vs_size_text out;
    double value = bytes < 0 ? -(double)bytes : (double)bytes;
    unsigned unit = 0;
    while (value >= 1023.5 && unit < 6) {
        value /= 1024;
        unit++;
    }
    snprintf(out.text, sizeof(out.text), "%s%.*f %s", bytes < 0 ? "-" : "",
             unit == 0 ? 0 : decimals(value), value, units[unit]);
    return out;
}

struct vs_size_text vs_format_time(uint64_t ns)
{
    struct vs_size_text out;
    double value = (double)ns;
    if (ns < 1000)
        snprintf(out.text, sizeof(out.text), "%" PRIu64 " ns", ns);
    else if (ns < 1000000)
        snprintf(out.text, sizeof(out.text), "%.*f us", decimals(value / 1e3), value / 1e3);
    else if (ns < 1000000000)
        snprintf(out.text, sizeof(out.text), "%.*f ms", decimals(value / 1e6), value / 1e6);
    else if (ns < 600000000000ULL)
        snprintf(out.text, sizeof(out.text), "%.*f s", decimals(value / 1e9), value / 1e9);
    else
        snprintf(out.text, sizeof(out.text), "%" PRIu64 " h %02" PRIu64 " min",
                 ns / UINT64_C(3600000000000), ns / UINT64_C(60000000000) % 60);
    return out;
}
