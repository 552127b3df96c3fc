/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks for texts in a trace the way a curious stranger would: every zstd frame
 * in the file is found by its magic, unpacked and searched, and so is the file
 * itself. Knows nothing of our format. Usage: chunk-strings TRACE TEXT… prints
 * how many frames there were and every text found; exit status 0 none found,
 * 1 found, 3 could not read or no frame at all.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>
#include <zstd_errors.h>

static int found;

static void search(const char *where, const void *data, size_t bytes, char **texts)
{
    for (char **text = texts; *text != NULL; text++) {
        if (memmem(data, bytes, *text, strlen(*text)) == NULL)
            continue;
        printf("%s holds %s\n", where, *text);
        found++;
    }
}

/* Unpacks one frame with the streaming interface: its size need not be known. */
static size_t search_frame(const char *frame, size_t bytes, char **texts)
{
    size_t packed = ZSTD_findFrameCompressedSize(frame, bytes);
    if (ZSTD_isError(packed))
        return 0;
    for (size_t room = packed * 8 + 65536;; room *= 2) {
        void *plain = malloc(room);
        if (plain == NULL)
            exit(3);
        size_t size = ZSTD_decompress(plain, room, frame, packed);
        if (!ZSTD_isError(size))
            search("a frame", plain, size, texts);
        free(plain);
        if (!ZSTD_isError(size))
            return packed;
        if (ZSTD_getErrorCode(size) != ZSTD_error_dstSize_tooSmall)
            return 0;
    }
}

int main(int argc, char **argv)
{
    struct stat about;
    if (argc < 3)
        return 2;
    int fd = open(argv[1], O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &about) != 0 || about.st_size == 0) {
        perror(argv[1]);
        return 3;
    }
    size_t bytes = (size_t)about.st_size;
    const char *file = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (file == MAP_FAILED)
        return 3;
    int frames = 0;
    search("the file", file, bytes, argv + 2);
    for (size_t at = 0; at + 4 <= bytes;) {
        size_t step = memcmp(file + at, "\x28\xb5\x2f\xfd", 4) == 0
                          ? search_frame(file + at, bytes - at, argv + 2)
                          : 0;
        frames += step > 0;
        at += step > 0 ? step : 1;
    }
    printf("%d frames\n", frames);
    if (frames == 0)
        return 3;
    return found > 0;
}
