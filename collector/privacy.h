/* SPDX-License-Identifier: Apache-2.0 */
/*
 * VRAMSCOPE_PRIVATE: what is hashed before it reaches the file, and how texts
 * that come from the system become JSON. The hash is the same for the same text
 * in every trace, so that ranks of one job still compare; it hides a name from a
 * reader, not from somebody who tries all likely names.
 */
#ifndef VS_COLLECTOR_PRIVACY_H
#define VS_COLLECTOR_PRIVACY_H

#include <jansson.h>
#include <stddef.h>

#define PRIVACY_HASH_BYTES 19U /* "h-" and 16 hexadecimal digits, and the zero */

/* Writes "h-0123456789abcdef" for `text`; `out_bytes` ≥ PRIVACY_HASH_BYTES. */
void privacy_hash(const char *text, char *out, size_t out_bytes);

/* A path fit to be shown: formats/private_path.h has the rule, which `vramscope redact` shares. */
void privacy_path(const char *path, char *out, size_t out_bytes);

/* JSON text of bytes that need not be UTF-8: what is not becomes '?'. New reference, or NULL. */
json_t *privacy_json_text(const char *text, size_t bytes);

#endif
