/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of addresses of one file, through the symbolizer as the product asks it:
 * symbols-ask SYMBOLIZER FILE [--build-id HEX] [--patience MS] [--folder DIR …]
 * [--background 1] < addresses
 * Prints per address "ADDRESS STATUS", then per frame a line "\tFUNCTION\tFILE\tLINE".
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "symbol_client.h"

static void print_answer(void *context, uint64_t address, enum symbol_status status,
                         const struct vs_symbol_frame *frames, uint32_t count)
{
    (void)context;
    printf("%" PRIx64 " %d\n", address, (int)status);
    for (uint32_t i = 0; i < count; i++)
        printf("\t%s\t%s\t%" PRIu32 "\n", frames[i].function, frames[i].file, frames[i].line);
    fflush(stdout);
}

static void read_build_id(struct symbol_module *module, const char *hex)
{
    unsigned byte;
    for (; module->build_id_bytes < SYMBOL_BUILD_ID_BYTES && sscanf(hex, "%2x", &byte) == 1;
         hex += 2)
        module->build_id[module->build_id_bytes++] = (uint8_t)byte;
}

int main(int argc, char **argv)
{
    static struct symbol_client client;
    static uint64_t addresses[SYMBOL_ADDRESSES_MAX];
    const char *folders[16] = {NULL};
    size_t folder_count = 0;
    if (argc < 3)
        return 2;
    struct symbol_module module = {.path = argv[2]};
    symbol_client_init(&client, folders);
    snprintf(client.program, sizeof client.program, "%s", argv[1]);
    for (int i = 3; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--build-id") == 0)
            read_build_id(&module, argv[i + 1]);
        else if (strcmp(argv[i], "--patience") == 0)
            client.patience_ms = (unsigned)atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--background") == 0)
            client.background = argv[i + 1][0] == '1';
        else if (strcmp(argv[i], "--folder") == 0 && folder_count < 15)
            folders[folder_count++] = argv[i + 1];
        else
            return 2;
    }
    uint32_t count = 0;
    int more = 1, error = 0;
    while (more && error == 0) {
        more = scanf("%" SCNx64, &addresses[count]) == 1;
        count += more != 0;
        if (count == SYMBOL_ADDRESSES_MAX || !more) {
            error = symbol_client_ask(&client, &module, addresses, count, print_answer, NULL);
            count = 0;
        }
    }
    if (error != 0)
        printf("error %s\n", symbol_client_error(error));
    printf("failures %u\n", module.failures);
    symbol_client_close(&client);
    struct rusage children;
    getrusage(RUSAGE_CHILDREN, &children);
    printf("peak_kib %ld\n", children.ru_maxrss);
    return error != 0;
}
