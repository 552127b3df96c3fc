/* SPDX-License-Identifier: Apache-2.0 */
/* A sink that compresses into another one: gzip, without a time in it. */
#ifndef VS_EXPORT_GZIP_H
#define VS_EXPORT_GZIP_H

#include "sink.h"

struct vs_gzip;

/* 0 or -ENOMEM. */
int vs_gzip_new(struct vs_sink *to, struct vs_gzip **out);
struct vs_sink *vs_gzip_sink(struct vs_gzip *gzip);
/* Ends the stream. Returns the first error met. */
int vs_gzip_finish(struct vs_gzip *gzip);
void vs_gzip_free(struct vs_gzip *gzip);

#endif
