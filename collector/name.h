/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The name of a trace file: expansion of VRAMSCOPE_OUTPUT's pattern, and what
 * to try when that file exists. Pure: no file is touched here.
 */
#ifndef VS_COLLECTOR_NAME_H
#define VS_COLLECTOR_NAME_H

#include <stddef.h>
#include <stdint.h>

#define NAME_DEFAULT "%e.%p.vscope"
#define NAME_DEFAULT_WITH_RANK "%e.r%r.%h.%p.vscope"

/* What the pattern's letters stand for. Texts may be NULL: "none" is written. */
struct name_facts {
    const char *executable; /* path or name; only its last part is used */
    const char *host;
    const char *rank; /* NULL when the process has none */
    uint32_t pid;
    int64_t start_seconds; /* of the real-time clock */
};

/*
 * Expands %e %p %h %r %t %% into `out`; any other letter stays as it is typed. A
 * pattern that is empty or ends in '/' gets the default name appended. Texts are
 * reduced to [A-Za-z0-9._-], so that none can leave its folder. Returns 0 or
 * -ENAMETOOLONG.
 */
int name_expand(const char *pattern, const struct name_facts *facts, char *out, size_t out_bytes);

/*
 * The n-th name to try when `path` is taken: ".n" before the suffix ("a.vscope"
 * → "a.1.vscope"), at the end when there is none. Returns 0 or -ENAMETOOLONG.
 */
int name_alternative(const char *path, unsigned n, char *out, size_t out_bytes);

#endif
