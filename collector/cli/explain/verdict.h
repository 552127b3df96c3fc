/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verdict on a paste: a class of the report's vocabulary, one sentence with the
 * numbers that decided, what those numbers cannot tell, what to do next.
 */
#ifndef VS_EXPLAIN_VERDICT_H
#define VS_EXPLAIN_VERDICT_H

#include "paste.h"

enum { VERDICT_WHY = 640, VERDICT_LINE = 256, VERDICT_LINES = 8 };

struct verdict_lines {
    char text[VERDICT_LINES][VERDICT_LINE];
    size_t count;
};

struct verdict {
    const char *class;
    char why[VERDICT_WHY];
    struct message subject; /* the failure it is about, derived numbers included */
    uint64_t failures;      /* different ones in the paste */
    char source[VERDICT_LINE];
    struct verdict_lines cannot_tell, next;
};

/* False if the paste has nothing that is understood. */
bool verdict_of(const struct paste *paste, struct verdict *verdict);

/* ---- between the files of the verdict --------------------------------------------------- */

void verdict_decide(struct verdict *verdict, const char *class, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void verdict_add(struct verdict_lines *lines, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Text of a number of the subject: "1.65 GiB". */
struct size_words {
    char text[24];
};
struct size_words size_of(const struct verdict *verdict, enum number number);
struct size_words size_words_of(int64_t bytes);

void verdict_derive(struct message *subject);                             /* derive.c */
void verdict_torch(struct verdict *verdict);                              /* verdict_torch.c */
void verdict_pools(const struct paste *paste, struct verdict *verdict);   /* verdict_pools.c */
void verdict_serving(struct verdict *verdict);                            /* verdict_serving.c */
void verdict_summary(const struct paste *paste, struct verdict *verdict); /* verdict_tables.c */
void verdict_smi(const struct paste *paste, struct verdict *verdict);     /* verdict_tables.c */
/* An error without figures, by the page of nvidia-smi beside it. */
void verdict_with_page(const struct paste *paste, struct verdict *verdict); /* verdict_tables.c */
void verdict_advise(struct verdict *verdict);                               /* advice.c */
/* The fullest device of an nvidia-smi page, or the one of that index; NULL if it has none. */
const struct smi_gpu *smi_device(const struct smi *smi, int index);

#endif
