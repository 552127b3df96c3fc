/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A paste, read once from front to back in memory that does not grow with it. It
 * is seen twice: as lines (tables) and as one run of text without any blanks
 * (sentences), so that how a terminal, a mail or a log wrapped and prefixed a
 * sentence does not matter.
 */
#ifndef VS_EXPLAIN_PASTE_H
#define VS_EXPLAIN_PASTE_H

#include "scan.h"

enum {
    PASTE_LINE = 4096,     /* longer lines are seen in pieces */
    PASTE_RUN = 16384,     /* text without blanks kept for sentences */
    PASTE_SENTENCE = 3072, /* a sentence is looked at when this much of it is there */
    PASTE_BEFORE = 512,    /* text kept before a sentence */
    PASTE_GPUS = 64,       /* of nvidia-smi pages; slices of MIG included */
    PASTE_PROCESSES = 32,  /* of nvidia-smi pages: the largest */
    PASTE_BUFFER_DEVICES = 32
};

struct smi_gpu {
    int index, instance; /* instance: of MIG, -1 for a whole device */
    struct amount used, total;
};

struct smi_process {
    int gpu, instance;
    uint64_t pid;
    struct amount used;
    char name[48];
};

struct smi {
    struct smi_gpu gpus[PASTE_GPUS];
    size_t gpu_count, process_count;
    struct smi_process processes[PASTE_PROCESSES];
    struct amount listed[PASTE_GPUS]; /* sum of the processes, by place in `gpus` */
    bool seen, in_mig, in_processes, nothing_listed;
    int last_index; /* GPU named by the row above */
};

struct summary_table {
    bool seen;
    int device;
    bool ooms_known, retries_known;
    uint64_t ooms, retries;
    struct amount now[4], peak[4]; /* enum summary_row */
};

enum summary_row { ROW_ALLOCATED, ROW_ACTIVE, ROW_RESERVED, ROW_NON_RELEASABLE };

/* What a dump of TensorFlow's and XLA's BFC allocator says. */
struct bfc {
    bool seen, refused;
    struct amount asked; /* of the device, when it first refused */
    struct amount limit, in_use, peak, largest_free, free_sum, region;
    bool stopped; /* the dump is over: a later one is another failure's */
};

struct ggml_device {
    struct amount free_at_start, total;
    struct amount buffers; /* made on it since then */
};

struct paste {
    struct message first_fatal, last; /* family NONE: none */
    uint64_t failures;
    struct summary_table summary;
    struct smi smi;
    struct bfc bfc;
    struct ggml_device ggml[PASTE_BUFFER_DEVICES];
    struct amount xla_program;
    /* reading */
    uint64_t bytes, odd_bytes;
    char line[PASTE_LINE];
    size_t line_length;
    int escape;
    bool line_cut;
    char run[PASTE_RUN];
    size_t run_length, run_looked;
};

void paste_start(struct paste *paste);
void paste_feed(struct paste *paste, const char *data, size_t length);
void paste_end(struct paste *paste);
/* Every parser's way to tell of a failure. */
void paste_failure(struct paste *paste, const struct message *message);

/* ---- the parsers ------------------------------------------------------------------------ */

/* A sentence: `trigger` as it looks without blanks. */
struct sentence {
    const char *trigger;
    /* `text` begins at the trigger, `start` is the oldest text kept before it. */
    void (*read)(struct paste *paste, const char *start, struct cursor text);
};

extern const struct sentence torch_sentences[], xla_sentences[], tensorflow_sentences[],
    cupy_sentences[], rmm_sentences[], ggml_sentences[], cuda_sentences[];

void summary_line(struct paste *paste, struct cursor line);
void smi_line(struct paste *paste, struct cursor line);
void xla_line(struct paste *paste, struct cursor line);
void bfc_line(struct paste *paste, struct cursor line);
void ggml_line(struct paste *paste, struct cursor line);

/* OneFlow says the same words as PyTorch: true if this is OneFlow's. */
bool oneflow_sentence(struct paste *paste, const char *start, struct cursor text);

/* True if `word` is in the `reach` bytes before `at`. */
bool text_before(const char *start, const char *at, const char *word, size_t reach);

#endif
