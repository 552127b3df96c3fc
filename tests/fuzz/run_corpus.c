/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drives the fuzz target without libFuzzer: run-corpus ROUNDS FILE… reads each
 * file as it is and then ROUNDS times with a few bytes changed (always the same
 * ones: a failure repeats).
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define FILE_MAX_BYTES (16U << 20)

static uint64_t draw(uint64_t *state)
{
    *state = *state * 6364136223846793005U + 1442695040888963407U;
    return *state >> 33;
}

static void change(uint8_t *data, size_t bytes, uint64_t *state)
{
    uint64_t changes = 1 + draw(state) % 4;
    for (uint64_t i = 0; i < changes; i++)
        data[draw(state) % bytes] = (uint8_t)draw(state);
}

static void mutate(const uint8_t *data, size_t bytes, unsigned long rounds)
{
    uint64_t state = bytes;
    for (unsigned long round = 0; round < rounds && bytes > 0; round++) {
        size_t kept = draw(&state) % 4 == 0 ? 1 + draw(&state) % bytes : bytes;
        uint8_t *copy = malloc(kept); /* exactly as long: AddressSanitizer sees its end */
        if (copy == NULL)
            exit(1);
        memcpy(copy, data, kept);
        change(copy, kept, &state);
        LLVMFuzzerTestOneInput(copy, kept);
        free(copy);
    }
}

int main(int count, char **arguments)
{
    static uint8_t data[FILE_MAX_BYTES];
    unsigned long rounds = count > 2 ? strtoul(arguments[1], NULL, 10) : 0;
    for (int i = 2; i < count; i++) {
        FILE *file = fopen(arguments[i], "rb");
        if (file == NULL)
            return 1;
        size_t bytes = fread(data, 1, sizeof data, file);
        fclose(file);
        LLVMFuzzerTestOneInput(data, bytes);
        mutate(data, bytes, rounds);
    }
    printf("%d files, each read with %lu changes\n", count - 2, rounds);
    return count > 2 ? 0 : 2;
}
