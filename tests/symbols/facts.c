/* SPDX-License-Identifier: Apache-2.0 */
/* Prints what a trace says about the naming of its code: symbols-facts TRACE. */
#include <stdio.h>

#include "trace.h"

int main(int argc, char **argv)
{
    struct vs_reader *reader = NULL;
    struct vs_error error = {{0}};
    if (argc != 2 || vs_reader_open(argv[1], &reader, &error) != 0) {
        fprintf(stderr, "%s\n", argc == 2 ? error.text : "usage: symbols-facts TRACE");
        return 1;
    }
    const char *facts = vs_reader_meta(reader, "symbols");
    puts(facts == NULL ? "null" : facts);
    vs_reader_close(reader);
    return 0;
}
