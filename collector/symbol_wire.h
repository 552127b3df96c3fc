/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between whoever wants names (the collector, `vramscope symbolize`) and
 * vramscope-symbolizer, which reads the programs' files. That is a process of
 * its own, because a damaged file may crash, hang or swell whoever reads it.
 *
 * A socket pair (SOCK_SEQPACKET) is the symbolizer's standard input. It says
 * hello once; then each request gets one answer per address, in their order. The
 * end of the stream ends it. Both sides come from the same build, and still check
 * what they receive.
 */
#ifndef VS_COLLECTOR_SYMBOL_WIRE_H
#define VS_COLLECTOR_SYMBOL_WIRE_H

#include <limits.h>
#include <stdint.h>

#define SYMBOL_WIRE_VERSION 1U
#define SYMBOL_BUILD_ID_BYTES 20U   /* longer ones are compared by their beginning */
#define SYMBOL_ADDRESSES_MAX 512U   /* of one request */
#define SYMBOL_FRAMES_MAX 32U       /* inlined calls at one address, and the function itself */
#define SYMBOL_FUNCTION_BYTES 1024U /* a longer name is cut; its last character is then "…" */
#define SYMBOL_FILE_BYTES 1024U     /* a longer path loses its beginning */
#define SYMBOL_REQUEST_BYTES \
    (sizeof(struct symbol_request) + SYMBOL_ADDRESSES_MAX * sizeof(uint64_t) + PATH_MAX)
#define SYMBOL_ANSWER_BYTES         \
    (sizeof(struct symbol_answer) + \
     SYMBOL_FRAMES_MAX * (sizeof(uint32_t) + SYMBOL_FUNCTION_BYTES + SYMBOL_FILE_BYTES))

struct symbol_hello {
    uint32_t version;
};

/* Followed by `address_count` addresses (64 bits, in the module's own terms), then the path. */
struct symbol_request {
    uint32_t address_count;
    uint32_t plain; /* 1: leave the debug information alone, use the symbol tables only */
    uint32_t path_bytes;
    uint32_t build_id_bytes;
    uint8_t build_id[SYMBOL_BUILD_ID_BYTES];
};

enum symbol_status {
    SYMBOL_FOUND = 0,
    SYMBOL_NOTHING_KNOWN, /* the file was read and says nothing about the address */
    SYMBOL_NO_FILE,       /* no such file, and none in the debug folders */
    SYMBOL_OTHER_BUILD,   /* a file is there, of another build */
    SYMBOL_UNREADABLE,    /* no permission, or not a file we understand */
    SYMBOL_FAILED,        /* the symbolizer crashed or hung there (said by the client) */
    SYMBOL_SKIPPED,       /* not asked: it failed in this module too often (said by the client) */
    SYMBOL_STATUSES
};

/* Followed by `frame_count` times: line (32 bits), function, file, both with a terminating zero. */
struct symbol_answer {
    uint64_t address;
    uint32_t status; /* enum symbol_status */
    uint32_t frame_count;
};

#endif
