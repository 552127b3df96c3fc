/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asking vramscope-symbolizer (symbol_wire.h): starts it, starts it again when it
 * crashed or hung, and finds out which module is to blame. Calls block, in bounded
 * time; one thread at a time uses a client.
 */
#ifndef VS_COLLECTOR_SYMBOL_CLIENT_H
#define VS_COLLECTOR_SYMBOL_CLIENT_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../formats/trace.h"
#include "symbol_wire.h"

struct symbol_client {
    char program[PATH_MAX];
    const char *const *folders; /* more places to look for files in; NULL at the end */
    bool background;            /* it is to be the least of this machine's work */
    unsigned patience_ms;       /* without an answer for so long, it hangs */
    unsigned starts_left;       /* it is not started more often than this */
    pid_t pid;                  /* -1: not running */
    int fd;
    atomic_bool cancelled; /* set by another thread: whatever goes on ends soon */
    uint8_t message[SYMBOL_ANSWER_BYTES];
};

/* A module to ask about; the client counts what went wrong in it. */
struct symbol_module {
    const char *path;
    uint8_t build_id[SYMBOL_BUILD_ID_BYTES];
    uint8_t build_id_bytes;
    unsigned failures;
};

/* The symbolizer beside the running program. `folders` must outlive the client. */
void symbol_client_init(struct symbol_client *client, const char *const *folders);
/* Ends the symbolizer, if it runs. */
void symbol_client_close(struct symbol_client *client);

/* What an address means; `frames` only for SYMBOL_FOUND, and only during the call. */
typedef void symbol_client_answer(void *context, uint64_t address, enum symbol_status status,
                                  const struct vs_symbol_frame *frames, uint32_t count);

/*
 * Asks about up to SYMBOL_ADDRESSES_MAX addresses of one module; `answer` is called
 * for each, in their order: sorted ones come soonest. Returns 0, or when there is no symbolizer
 * (any more) and the rest was not answered: -ENOENT (not installed), -ELIBACC (it does not start),
 * -ECONNABORTED (it failed too often), -ECANCELED, or the system's error.
 */
int symbol_client_ask(struct symbol_client *client, struct symbol_module *module,
                      const uint64_t *addresses, uint32_t count, symbol_client_answer *answer,
                      void *context);

/* One clause for a person about such an error. */
const char *symbol_client_error(int error);
/* One clause for a person about an address without a name. */
const char *symbol_status_text(enum symbol_status status);

#endif
