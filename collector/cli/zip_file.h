/* SPDX-License-Identifier: Apache-2.0 */
/* A zip archive of a few members, whose size is known before it is written. */
#ifndef VS_CLI_ZIP_FILE_H
#define VS_CLI_ZIP_FILE_H

#include <stddef.h>
#include <stdint.h>

struct zip_member {
    const char *name;
    uint32_t checksum; /* CRC-32 of what is in it */
    uint64_t bytes, stored_bytes;
    uint8_t *deflated; /* owned; NULL: stored as it is in `fd` */
    int fd;
};

/* Deflates bytes in memory. 0 or -ENOMEM. */
int zip_deflate(const char *name, const void *data, size_t bytes, struct zip_member *member);
/* A file as it is: what is in it is compressed already. 0 or the read's error. */
int zip_store(const char *name, int fd, uint64_t bytes, struct zip_member *member);
void zip_free(struct zip_member *members, size_t count);

/* Size of the archive of these members. */
uint64_t zip_bytes(const struct zip_member *members, size_t count);
/* Writes the archive; sizes below 4 GiB. 0 or the system's error. */
int zip_write(int fd, const struct zip_member *members, size_t count);

#endif
