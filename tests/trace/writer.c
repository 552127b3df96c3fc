/* SPDX-License-Identifier: Apache-2.0 */
/* Writes one of the traces of shapes.c: writer NAME FILE; without arguments lists the names. */
#include <stdio.h>
#include <string.h>

#include "shapes.h"

static int write_file(const char *path, const struct vs_bytes *file)
{
    FILE *out = fopen(path, "wb");
    if (out == NULL)
        return 1;
    int bad = fwrite(file->data, 1, file->bytes, out) != file->bytes;
    return fclose(out) != 0 || bad;
}

int main(int count, char **arguments)
{
    for (size_t i = 0; i < shape_count; i++) {
        if (count == 1)
            puts(shapes[i].name);
        else if (count == 3 && strcmp(arguments[1], shapes[i].name) == 0) {
            struct vs_bytes file = {0};
            shapes[i].make(&file);
            int status = write_file(arguments[2], &file);
            vs_bytes_free(&file);
            return status;
        }
    }
    return count == 1 ? 0 : 2;
}
