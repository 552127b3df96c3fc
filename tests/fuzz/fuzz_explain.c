/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target of `vramscope explain`: any bytes as a paste, fed in pieces of a size that
 * they choose, judged and printed both ways. The verdict must be one of the contract's
 * words with a sentence, the JSON must be readable, and how the paste was cut into pieces
 * must not matter.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "explain/print.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void require(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "explain: %s\n", what);
    abort();
}

static bool is_class(const char *name)
{
    static const char *const classes[] = {
        "full",           "fragmented",      "other_stream",
        "pinned_segment", "waiting_streams", "limit",
        "held_by_cache",  "multicast",       "request_exceeds_device",
        "outside",        "unknown",         "other_process",
        "address_space",  "host_memory",     "follow_up"};
    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
        if (strcmp(name, classes[i]) == 0)
            return true;
    return false;
}

static void read_pieces(struct paste *paste, const uint8_t *data, size_t bytes, size_t piece)
{
    paste_start(paste);
    for (size_t at = 0; at < bytes; at += piece)
        paste_feed(paste, (const char *)data + at, bytes - at < piece ? bytes - at : piece);
    paste_end(paste);
}

static void check_json(const struct verdict *verdict)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    require(out != NULL && verdict_print_json(out, verdict), "JSON was not written");
    fclose(out);
    json_t *object = json_loadb(text, length, 0, NULL);
    require(object != NULL, "JSON cannot be read");
    require(json_is_string(json_object_get(object, "why")), "no text in why");
    json_decref(object);
    free(text);
}

static void check_page(const struct verdict *verdict)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (out == NULL)
        return;
    verdict_print_page(out, verdict);
    fclose(out);
    require(length > 0, "no page");
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct paste paste;
    static struct verdict whole, cut;
    read_pieces(&paste, data, bytes, bytes + 1);
    bool found = verdict_of(&paste, &whole);
    read_pieces(&paste, data, bytes, bytes > 0 ? 1 + data[0] % 97U : 1);
    require(verdict_of(&paste, &cut) == found, "pieces change whether it is understood");
    if (!found)
        return 0;
    require(is_class(whole.class), "not a class");
    require(whole.why[0] != 0, "no sentence");
    require(strcmp(whole.class, cut.class) == 0 && strcmp(whole.why, cut.why) == 0,
            "pieces change the verdict");
    check_json(&whole);
    check_page(&whole);
    return 0;
}
