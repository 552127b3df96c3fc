/* SPDX-License-Identifier: Apache-2.0 */
/* simgpu-books: prints the books of the simulated devices from outside. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/state.h"

static const char *const call_names[] = {
#define CALL(name) #name,
#include "calls.def"
#undef CALL
};

static const char *call_name(unsigned call)
{
    return call < sizeof call_names / sizeof *call_names ? call_names[call] : "unknown";
}

static int usage(FILE *out, int status)
{
    fprintf(out, "usage: simgpu-books [--json] [--path STATE]\n"
                 "Prints who uses what on the simulated devices. STATE defaults to $SIMGPU_STATE,\n"
                 "which scripts/simgpu sets.\n");
    return status;
}

int main(int argc, char **argv)
{
    bool json = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            json = true;
        else if (strcmp(argv[i], "--path") == 0 && i + 1 < argc)
            setenv("SIMGPU_STATE", argv[++i], 1);
        else if (strcmp(argv[i], "--help") == 0)
            return usage(stdout, 0);
        else
            return usage(stderr, 2);
    }
    const char *path = getenv("SIMGPU_STATE");
    if (!path || !*path) {
        fprintf(stderr, "simgpu-books: no SIMGPU_STATE: run under scripts/simgpu or give --path\n");
        return 1;
    }
    int error = simgpu_state_attach(false);
    if (error) {
        fprintf(stderr, "simgpu-books: cannot open %s: %s\n", path, strerror(-error));
        return 1;
    }
    simgpu_state_print(stdout, json, call_name);
    return 0;
}
