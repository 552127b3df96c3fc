/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a pasted text says, in one vocabulary: every parser of this folder turns
 * the words of one family (PyTorch, nvidia-smi, …) into these numbers, and the
 * verdict reads nothing else.
 */
#ifndef VS_EXPLAIN_MESSAGE_H
#define VS_EXPLAIN_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes as printed: the true value is within ±rounding of `bytes`. */
struct amount {
    int64_t bytes;
    int64_t rounding;
    bool known;
};

/* Figures above this (1 EiB) are "no limit" or a wrapped subtraction, never memory. */
#define AMOUNT_ABSURD ((int64_t)1 << 60)

enum number {
    NUMBER_REQUESTED,
    NUMBER_TOTAL,          /* the device, or the MIG slice */
    NUMBER_FREE,           /* as the driver said when the request had failed */
    NUMBER_ALLOWED,        /* the process's own limit */
    NUMBER_ALLOCATED,      /* handed out to the program */
    NUMBER_PRIVATE,        /* free inside private pools: for their owner only */
    NUMBER_UNALLOCATED,    /* reserved, not allocated, not in private pools */
    NUMBER_RESERVED,       /* allocated + private + unallocated */
    NUMBER_PROCESS,        /* all that this process holds on the device */
    NUMBER_OTHER_LISTED,   /* processes that the message names */
    NUMBER_OUTSIDE,        /* of this process, outside of the framework */
    NUMBER_OTHER,          /* other processes */
    NUMBER_OUTSIDE_ANY,    /* the two together, where they cannot be told apart */
    NUMBER_SHORT,          /* requested - free */
    NUMBER_LIMIT,          /* of a pool */
    NUMBER_LARGEST_FREE,   /* of a pool's free blocks */
    NUMBER_ACTIVE,         /* allocated, or freed and waiting for a stream */
    NUMBER_PENDING,        /* active - allocated */
    NUMBER_NON_RELEASABLE, /* free parts of segments that live blocks hold */
    NUMBER_PEAK_ALLOCATED,
    NUMBER_PEAK_RESERVED,
    NUMBER_PROGRAM, /* a compiled program's need by its own account */
    NUMBER_USED,    /* on the device, by everybody */
    NUMBER_LISTED,  /* processes of an nvidia-smi page */
    NUMBERS
};

enum family {
    FAMILY_NONE,
    FAMILY_TORCH,
    FAMILY_TORCH_ASYNC,
    FAMILY_SUMMARY,
    FAMILY_SMI,
    FAMILY_XLA,
    FAMILY_TENSORFLOW,
    FAMILY_CUPY,
    FAMILY_RMM,
    FAMILY_GGML,
    FAMILY_ONEFLOW,
    FAMILY_PADDLE,
    FAMILY_XGBOOST,
    FAMILY_JULIA,
    FAMILY_ONNX,
    FAMILY_TENSORRT,
    FAMILY_TRITON,
    FAMILY_FAISS,
    FAMILY_VLLM,
    FAMILY_SGLANG,
    FAMILY_TRANSFORMERS,
    FAMILY_DEEPSPEED,
    FAMILY_HOST, /* the operating system, or the language, about the host's memory */
    FAMILY_CUDA  /* a library's error without numbers */
};

/* What the words alone decide, whatever the numbers. */
enum hint {
    HINT_NONE,
    HINT_LIMIT,
    HINT_HOST,
    HINT_ADDRESS_SPACE,
    HINT_BEYOND_ANY, /* more than any device has */
    HINT_NO_MESSAGE, /* the framework failed to print its message */
};

/* What words mean whatever the figures, and what to do about it. */
struct explanation {
    const char *why;         /* a clause, no full stop; NULL: the figures decide */
    const char *cannot_tell; /* NULL: nothing beside what the family cannot */
    const char *next;        /* NULL: none */
};

struct message {
    enum family family;
    enum hint hint;
    uint64_t line;                   /* of the paste, where it is told */
    int device;                      /* -1: not said */
    bool fatal;                      /* raised as an error, as far as the text shows */
    bool weak;                       /* says little: a fuller account of it is the same failure */
    bool process_assumed;            /* NUMBER_PROCESS is a listed process taken to be this one */
    bool old_wording;                /* does not tell this process from the others */
    bool free_wrapped;               /* the free figure was above the total */
    bool no_cuda;                    /* not a device that can be traced */
    const struct explanation *says;  /* NULL: its figures say what there is to say */
    uint64_t tokens, fitting_tokens; /* of a context: wanted, and as many as there is room for */
    char what[96];                   /* the allocator, buffer or call that failed; printable */
    struct amount numbers[NUMBERS];
};

const char *number_name(enum number number);  /* as in --json */
const char *number_title(enum number number); /* for people */
const char *family_name(enum family family);

static inline bool number_known(const struct message *message, enum number number)
{
    return message->numbers[number].known;
}

static inline int64_t number_of(const struct message *message, enum number number)
{
    return message->numbers[number].bytes;
}

/* Comparing printed figures: true unless rounding alone cannot explain it. Unknown: false. */
bool at_least(struct amount a, struct amount b);
struct amount amount_sum(struct amount a, struct amount b);
/* a - b, unknown if that is negative by more than rounding, else not below 0. */
struct amount amount_rest(struct amount a, struct amount b);
/* True if `a` is at least `percent` of `whole`. */
bool is_share(struct amount a, struct amount whole, int percent);

struct message message_start(enum family family);
/* Sets what is not set yet. */
void message_fill(struct message *message, enum number number, struct amount amount);
/* Keeps the printable part of `length` bytes as `what`. */
void message_what(struct message *message, const char *text, size_t length);
/* Same failure told twice: same device, and every figure both know agrees. */
bool message_same(const struct message *a, const struct message *b);

#endif
