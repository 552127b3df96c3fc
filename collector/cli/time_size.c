/* SPDX-License-Identifier: Apache-2.0 */
/* Times and sizes as people type them: see time_size.h. */
#include "time_size.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool time_of_text(const char *text, int64_t *time_ns)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"", 1e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}};
    char *end;
    double value = strtod(text, &end);
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        double ns = value * units[i].ns;
        if (end == text || strcmp(end, units[i].name) != 0 || !(ns > -9e18 && ns < 9e18))
            continue;
        *time_ns = (int64_t)ns;
        return true;
    }
    return false;
}

bool take_bound(const char *command, const char *option, const char *text, bool *given,
                int64_t *time_ns)
{
    *given = text != NULL;
    if (text == NULL || time_of_text(text, time_ns))
        return true;
    fprintf(stderr,
            "vramscope %s: %s takes a time such as 12.5, 300ms or -2 (before the end), not '%s'\n",
            command, option, text);
    return false;
}

bool size_of_text(const char *text, int64_t *bytes)
{
    static const char *const units[] = {"", "K", "M", "G", "T"};
    char *end;
    double value = strtod(text, &end);
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        size_t length = strlen(units[i]);
        const char *rest = end + length;
        double scaled = ldexp(value, (int)(10 * i));
        if (end == text || strncasecmp(end, units[i], length) != 0 ||
            (rest[0] != 0 && strcasecmp(rest, "B") != 0 && strcasecmp(rest, "iB") != 0) ||
            !(scaled >= 0 && scaled < 9e18))
            continue;
        *bytes = (int64_t)scaled;
        return true;
    }
    return false;
}
