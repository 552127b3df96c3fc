/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A paste, read once from front to back in memory that does not grow with it. It
 * is seen twice: as lines (tables) and as text without any blanks (sentences), a run of
 * it for each rank, so that how a terminal, a mail or a log wrapped, prefixed and mixed
 * sentences does not matter.
 */
#ifndef VS_EXPLAIN_PASTE_H
#define VS_EXPLAIN_PASTE_H

#include <stdio.h>

#include "scan.h"

enum {
    PASTE_LINE = 4096,     /* longer lines are seen in pieces */
    PASTE_RUN = 16384,     /* text without blanks kept for sentences */
    PASTE_RUNS = 8,        /* ranks and programs whose lines may stand between each other */
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
    struct amount all_listed;         /* sum of all processes */
    bool seen, in_mig, in_processes, nothing_listed;
    bool not_supported; /* a device that shares the host's memory */
    int last_index;     /* GPU named by the row above */
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
    bool xla;            /* the pool is XLA's, not TensorFlow's */
    struct amount asked; /* of the device, when it first refused */
    struct amount limit, in_use, peak, largest_free, free_sum, region;
    bool stopped; /* the dump is over: a later one is another failure's */
};

/* Columns of a list around nvidia-smi, from its header. */
enum column {
    COLUMN_OTHER,
    COLUMN_GPU,
    COLUMN_PID,
    COLUMN_NAME,
    COLUMN_PROCESS_USED,
    COLUMN_USED,
    COLUMN_TOTAL,
    COLUMN_FREE
};

enum { LIST_COLUMNS = 24 };

struct list {
    unsigned char columns[LIST_COLUMNS]; /* enum column */
    size_t count;                        /* 0: none is being read */
    bool commas;                         /* else blanks part them */
    int rows;
};

/* What `nvidia-smi -q` said so far of the device and process at hand. */
struct query {
    bool seen, in_memory;
    int gpus;
    struct amount total;
    uint64_t pid;
    char name[48];
    size_t name_length;
};

struct ggml_device {
    struct amount free_at_start, total;
    struct amount buffers; /* made on it since then */
};

/* Lines of one rank or program, joined without blanks. */
struct run {
    uint64_t whose; /* from its mark; 0: none yet */
    uint64_t used;  /* by line */
    size_t length, looked;
    char text[PASTE_RUN];
    uint64_t lines[PASTE_RUN]; /* where each byte was */
};

struct paste {
    struct message first_fatal, last; /* family NONE: none */
    uint64_t failures;
    struct summary_table summary;
    struct smi smi;
    struct bfc bfc;
    struct ggml_device ggml[PASTE_BUFFER_DEVICES];
    struct amount xla_program;
    struct amount cache_short; /* what vLLM's KV cache lacks to have anything */
    struct list list;
    struct query query;
    /* reading */
    uint64_t bytes, odd_bytes;
    char line[PASTE_LINE];
    size_t line_length;
    int escape;
    bool line_cut;
    uint64_t lines;   /* read so far */
    uint64_t reading; /* the line whose sentence is being read */
    struct run runs[PASTE_RUNS];
    size_t run; /* that got the last line */
};

void paste_start(struct paste *paste);
void paste_feed(struct paste *paste, const char *data, size_t length);
void paste_end(struct paste *paste);
/* Whether a failure was told already: words that say little are then not looked at. */
static inline bool paste_knows(const struct paste *paste)
{
    return paste->first_fatal.family != FAMILY_NONE || paste->last.family != FAMILY_NONE;
}

/* Every parser's way to tell of a failure. */
void paste_failure(struct paste *paste, const struct message *message);

/* Takes entities and tags out of a line, in place; its new length. */
size_t markup_away(char *line, size_t length);
/* Steps over what a log put before a line; whose line it is, 0 if that is not told. */
uint64_t prefix_skip(struct cursor *line);
/* Adds a line to the run of `whose`; sentences that are whole are read when there is no room. */
void run_append(struct paste *paste, uint64_t whose, struct cursor line);
void run_end(struct paste *paste);

/* ---- the parsers ------------------------------------------------------------------------ */

/*
 * A failure that is told by words alone, or by words and the size of the request: a row of
 * a table, no code. Texts are without blanks, what people read has them.
 */
struct told {
    enum family family;
    enum hint hint;
    const char *what;                /* what failed, where `says` is not given */
    const struct explanation *says;  /* what it means, whole */
    const char *request;             /* the request's size stands behind this word */
    const char *device;              /* the GPU's number stands behind this word */
    const char *with, *without;      /* must, must not follow within TOLD_REACH bytes */
    const char *before, *not_before; /* must, must not stand within TOLD_REACH bytes before */
    bool fatal;
    bool last;    /* only where nobody told more of it */
    bool no_cuda; /* not a device that can be traced */
};

enum { TOLD_REACH = 300 };

/* A sentence: `trigger` as it looks without blanks, and what reads it: a row, or code. */
struct sentence {
    const char *trigger;
    /* `text` begins at the trigger, `start` is the oldest text kept before it. */
    void (*read)(struct paste *paste, const char *start, struct cursor text);
    const struct told *told;
};

extern const struct sentence torch_sentences[], xla_sentences[], tensorflow_sentences[],
    cupy_sentences[], rmm_sentences[], ggml_sentences[], others_sentences[], serving_sentences[],
    cuda_sentences[], host_sentences[];

void told_sentence(struct paste *paste, const struct told *told, const char *start,
                   struct cursor text);
/* The failure of a row, its figures from `text`. */
void told_failure(struct paste *paste, const struct told *told, struct cursor text);
/* Sets the message's device to the number behind `word`. */
void message_device(struct message *message, struct cursor text, const char *word, size_t reach);

void summary_line(struct paste *paste, struct cursor line);
void smi_line(struct paste *paste, struct cursor line);
/* One device, one process, as any list tells it. gpu -1: not told. */
void smi_keep_gpu(struct smi *smi, int index, int instance, struct amount used,
                  struct amount total);
void smi_keep_process(struct smi *smi, struct smi_process *process, struct cursor name);
void xla_line(struct paste *paste, struct cursor line);
void bfc_line(struct paste *paste, struct cursor line);
void ggml_line(struct paste *paste, struct cursor line);
/* Lists of programs around nvidia-smi: its --query-… and pmon, gpustat, rocm-smi. */
void list_line(struct paste *paste, struct cursor line);
/* nvidia-smi -q */
void query_line(struct paste *paste, struct cursor line);
void host_line(struct paste *paste, struct cursor line);

/* OneFlow says the same words as PyTorch: true if this is OneFlow's. */
bool oneflow_sentence(struct paste *paste, const char *start, struct cursor text);

/* True if `word` is in the `reach` bytes before `at`. */
bool text_before(const char *start, const char *at, const char *word, size_t reach);

#endif
