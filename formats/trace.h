/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trace container: writing a .vscope file and reading one, whole or
 * damaged. docs/format.md is the normative description of the bytes; this is
 * the C view of it. No file here knows how an event was captured.
 *
 * Errors: functions return 0 (or a count) or a negative errno value. Where a
 * struct vs_error is passed it receives one line for a person: what, which
 * file, what to do. Nothing here prints or exits. No function is thread-safe on
 * the same object; different objects are independent. None is signal-safe.
 */
#ifndef VS_FORMATS_TRACE_H
#define VS_FORMATS_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record.h"

#define VS_TRACE_FORMAT_VERSION 1U
#define VS_TRACE_SUFFIX ".vscope"

struct vs_error {
    char text[512];
};

/* ---- definitions: what ids in events mean --------------------------------- */

struct vs_thread_def {
    uint32_t thread;
    char name[64];
};

struct vs_module_def {
    uint32_t id;
    uint32_t generation;
    uint64_t start, end, load_bias;
    uint8_t build_id[20];
    uint8_t build_id_bytes;
    const char *path; /* owned by the reader; by the caller when writing */
};

struct vs_device_def {
    int32_t device; /* this process's ordinal, as in events */
    uint8_t uuid[16];
    uint8_t mig_uuid[16];
    char pci_id[16];
    char name[64];
    uint64_t total_bytes;
    bool integrated;
};

struct vs_stack_def {
    uint32_t id;
    uint32_t generation; /* of the module map the addresses are of */
    uint32_t frame_count;
    const uint64_t *frames; /* meaning of a word: formats/frame_word.h */
};

/* A code object of an interpreter, named while it was alive. */
struct vs_code_def {
    uint32_t id;
    uint32_t first_line;
    const char *name; /* qualified; owned by the reader, by the caller when writing */
    const char *file;
};

/* One function at an address: several when calls were inlined there. */
struct vs_symbol_frame {
    const char *function; /* demangled; "" not known */
    const char *file;     /* "" not known */
    uint32_t line;        /* 0 not known */
};

/* What an address of a module means. `count` 0: looked for, and nothing known. */
struct vs_symbol_def {
    uint32_t module;
    uint64_t address; /* in the module's own terms: looked-up address - load bias */
    uint32_t count;
    const struct vs_symbol_frame *frames; /* the innermost inlined call first */
};

/* ---- writer (collector, tests) --------------------------------------------- */

struct vs_writer;

/*
 * Writes the file header at offset 0 of `fd` (regular file, empty, positioned
 * writes are used; the writer does not own it). Chunks of events are cut at
 * `chunk_events` events or by vs_writer_flush, whichever comes first.
 * `zstd_level` 1..19. Returns 0, -ENOMEM, or the write's error.
 */
int vs_writer_create(int fd, size_t chunk_events, int zstd_level, struct vs_writer **out);

/*
 * Buffered. A sequence is at least the one before plus its `cells`. Events that
 * the collector makes itself take no cells (cells = 0) and have the position
 * behind the last record as their sequence; several may share it. Returns 0,
 * -EINVAL on a sequence too small, or the write's error.
 */
int vs_writer_event(struct vs_writer *writer, const struct vs_sequenced_event *event);

/* Ids may be defined again: the later definition in file order wins. Text need not be terminated.
 */
int vs_writer_string(struct vs_writer *writer, uint32_t id, const char *text, size_t bytes);
int vs_writer_thread(struct vs_writer *writer, const struct vs_thread_def *thread);
int vs_writer_module(struct vs_writer *writer, const struct vs_module_def *module);
int vs_writer_device(struct vs_writer *writer, const struct vs_device_def *device);
int vs_writer_stack(struct vs_writer *writer, const struct vs_stack_def *stack);
int vs_writer_code(struct vs_writer *writer, const struct vs_code_def *code);
int vs_writer_symbol(struct vs_writer *writer, const struct vs_symbol_def *symbol);

/*
 * Facts about the process as one JSON object (UTF-8). `name` is "process",
 * "clock", "hooks", "end" (docs/format.md lists the fields of each). Objects of
 * the same name written later are laid over earlier ones, field by field.
 */
int vs_writer_meta(struct vs_writer *writer, const char *name, const char *json, size_t bytes);

/* The live set at a sequence, as ALLOC-like events (key frame). */
int vs_writer_keyframe(struct vs_writer *writer, uint64_t sequence,
                       const struct vs_sequenced_event *live, size_t count);

/* `events` events that are missing here: their indices are passed over. */
int vs_writer_hole(struct vs_writer *writer, uint64_t events);

/* Says that the trace is cut from a longer one: `events` taken out, in `gaps` stretches. */
int vs_writer_cut(struct vs_writer *writer, uint64_t events, uint64_t gaps);

/* Everything buffered goes to the file (definitions before the events that use them). */
int vs_writer_flush(struct vs_writer *writer);

/* Bytes in the file so far. */
uint64_t vs_writer_bytes(const struct vs_writer *writer);

/* Flushes, writes the END chunk when `complete`, frees. Returns the first error met. */
int vs_writer_close(struct vs_writer *writer, bool complete);

/* ---- reader ---------------------------------------------------------------- */

struct vs_reader;

/* How whole a trace is; every figure is about the file, not about the program. */
struct vs_trace_status {
    uint64_t file_bytes;
    uint32_t format_version;
    uint64_t chunks;         /* good ones */
    uint64_t damaged_chunks; /* checksum or size wrong, skipped */
    uint64_t damaged_bytes;  /* skipped while looking for the next chunk */
    uint64_t unknown_chunks; /* of a later version, not critical, skipped */
    uint64_t events;         /* readable: as many as vs_reader_next gives */
    uint64_t sequence_gaps;  /* holes between good chunks: events that were there once */
    uint64_t missing_cells;  /* ring cells in those holes */
    uint64_t ring_events;    /* events taken from a left-over ring file beside the trace */
    bool truncated;          /* the file, or what it is packed in, ends before its end */
    bool closed;             /* an END chunk was found */
    uint64_t missing_events; /* events in the gaps: exact, counted by index */
    uint64_t cut_events;     /* of the trace this one was cut from, taken out of it */
    uint64_t cut_gaps;       /* stretches they were taken out of; 0: it is not cut */
    /* A circular file that lost its beginning starts with a key frame: the first
     * `keyframe_events` events are what was live at `keyframe_sequence`. */
    uint64_t keyframe_sequence;
    uint64_t keyframe_events;
};

/*
 * Opens and indexes a trace, one packed as packed.h says too; everything readable is readable
 * afterwards, and what is not is counted in the status. Also takes PATH's left-over ring file.
 * Returns 0; -ENOENT, -EISDIR, -EACCES and the like from the system; -EINVAL
 * not a trace or empty; -ENOTSUP a version (or a critical chunk) this build
 * cannot read. `error` says which in one line.
 */
int vs_reader_open(const char *path, struct vs_reader **out, struct vs_error *error);
/* The same over bytes in memory, which must outlive the reader; `name` stands for the path. */
int vs_reader_open_memory(const void *data, size_t bytes, const char *name, struct vs_reader **out,
                          struct vs_error *error);
void vs_reader_close(struct vs_reader *reader);

const struct vs_trace_status *vs_reader_status(const struct vs_reader *reader);
const char *vs_reader_path(const struct vs_reader *reader);
/* What vs_reader_path says from now on. 0 or -ENOMEM: it says NULL then. */
int vs_reader_call(struct vs_reader *reader, const char *name);

/* Next event in sequence order: 1 and fills `out`, 0 at the end, negative on a read error. */
int vs_reader_next(struct vs_reader *reader, struct vs_sequenced_event *out);
/* The same, many at once without a copy: *events stays valid until the next call on the reader. */
int vs_reader_next_block(struct vs_reader *reader, const struct vs_sequenced_event **events,
                         size_t *count);
/* Index of the last block's first event, docs/format.md §1: it jumps where events are missing. A
 * key frame's events count up to the one behind it (modulo 2^64), a ring's are as the file's end.
 */
uint64_t vs_reader_block_index(const struct vs_reader *reader);
/* Back to the first event. */
void vs_reader_rewind(struct vs_reader *reader);

/* Definitions; NULL when the id is not defined. Owned by the reader. */
const char *vs_reader_string(const struct vs_reader *reader, uint32_t id);
const struct vs_thread_def *vs_reader_thread(const struct vs_reader *reader, uint32_t thread);
const struct vs_module_def *vs_reader_module(const struct vs_reader *reader, uint32_t id);
/*
 * Valid until the next call of this function: stacks may be too many to keep and
 * are unpacked when asked for. Many of them: ask in order of their ids.
 */
const struct vs_stack_def *vs_reader_stack(const struct vs_reader *reader, uint32_t id);
/* The ids of all stacks in the file, increasing: id number `index`, below the count. */
size_t vs_reader_stack_count(const struct vs_reader *reader);
uint32_t vs_reader_stack_id(const struct vs_reader *reader, size_t index);
const struct vs_code_def *vs_reader_code(const struct vs_reader *reader, uint32_t id);
/* The module that held `address` when the module map was at `generation`; NULL none. */
const struct vs_module_def *vs_reader_module_at(const struct vs_reader *reader, uint64_t address,
                                                uint32_t generation);
/* All modules, in order of their start; NULL behind the last. */
size_t vs_reader_module_count(const struct vs_reader *reader);
const struct vs_module_def *vs_reader_module_number(const struct vs_reader *reader, size_t index);
/* `address` as in struct vs_symbol_def. NULL: never looked for. */
const struct vs_symbol_def *vs_reader_symbol(const struct vs_reader *reader, uint32_t module,
                                             uint64_t address);
size_t vs_reader_device_count(const struct vs_reader *reader);
const struct vs_device_def *vs_reader_device(const struct vs_reader *reader, size_t index);

/* The merged JSON text of a meta object ("process", "clock", "hooks", "end"), or NULL. */
const char *vs_reader_meta(const struct vs_reader *reader, const char *name);

/* CUDA's own name of a result ("CUDA_ERROR_OUT_OF_MEMORY" or "cudaErrorMemoryAllocation"),
 * chosen by the entry point's prefix (cu… / cuda…); "error N" in `buffer` when unknown. */
const char *vs_cuda_error_name(const char *call, int32_t result, char *buffer, size_t bytes);

#endif
