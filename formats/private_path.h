/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What takes the place of a name or a path that is not to be shown, while
 * recording (VRAMSCOPE_PRIVATE) and afterwards (vramscope redact). The same text
 * gives the same token in every trace, so that ranks of one job still compare; a
 * token hides a name from a reader, not from somebody who tries all likely names.
 */
#ifndef VS_FORMATS_PRIVATE_PATH_H
#define VS_FORMATS_PRIVATE_PATH_H

#include <stdbool.h>
#include <stddef.h>

#define VS_PRIVATE_TOKEN_BYTES 19U /* "h-" and 16 hexadecimal digits, and the zero */
/* More than this a path never grows by, the zero included. */
#define VS_PRIVATE_PATH_MORE (2U * VS_PRIVATE_TOKEN_BYTES + 2U)

/* Writes "h-0123456789abcdef" for `bytes` bytes of text; `out` has VS_PRIVATE_TOKEN_BYTES. */
void vs_private_token(const char *text, size_t bytes, char *out);
/* Whether a text begins with a token: it is hidden already. */
bool vs_private_is_token(const char *text);

/*
 * A path fit to be shown. From "site-packages/", "dist-packages/" or Python's own
 * "lib/python3.11/" on it stays as it is; the folder before it becomes a token.
 * Of other paths the folder becomes one token and the file name another, with
 * what readers go by kept: a file name below /usr, /lib, /lib64 and /opt, that of
 * an interpreter or of a library that everybody has, and the suffix of others.
 * Files of one folder stay together, and versions of one library alike. A text
 * that begins with a token stays. Cut to `room`.
 */
void vs_private_path(const char *path, char *out, size_t room);

#endif
