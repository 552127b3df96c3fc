/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shared-memory ring between the shim (many producers) and the collector
 * (one consumer). The only header besides record.h that both include. Everything
 * here is read by a process that must not trust the other one: copy a field
 * once, check it, then use the copy.
 *
 * Layout of the memfd:  header (VS_RING_HEADER_BYTES) | cell[0 .. cell_count)
 *
 * Positions count cells since the ring began and never wrap; cell index =
 * position & (cell_count - 1). A fresh ring has head = tail = drained =
 * cell_count (lap 1), so that no record ever has position 0. A record may run
 * over the end of the ring: each of its cells is found by its own index.
 *
 * Life of one record of n cells at position p
 *   1. reserve: compare-and-swap `head` from p to p + n, only if p + n - tail <= cell_count
 *   2. claim:   cell[p].claim = VS_CLAIM(p, n, thread)                    (relaxed)
 *               cell[p].stamp = VS_STAMP_CLAIMED | (p + 1)                (release)
 *   3. body:    plain stores into the n cells
 *   4. commit:  cell[p + i].stamp = p + i + 1 for i = n - 1 .. 0          (release, first cell
 * last) Between 1 and 2 none of the n cells carries a stamp of this lap.
 *
 * The consumer loads s = cell[tail].stamp (acquire):
 *   s == tail + 1                        whole: n = VS_CLAIM_CELLS(claim); copy; tail += n
 * (release) s == VS_STAMP_CLAIMED | (tail + 1)   unfinished: `claim` says who and how long anything
 * else                        reserved but not claimed, or nothing (tail == head) It never passes
 * an unfinished record by time, for its writer may wake. It passes one (and counts it as torn) only
 *   - in a live process: claimed, and the claiming thread is gone: n cells;
 *   - in a dead process: claimed: n cells; not claimed: up to the next position
 *     whose cell carries its own stamp (claimed or committed), or to head.
 * A thread that dies between 1 and 2 in a process that lives on stops the ring
 * until the process ends: every event from then on is a counted loss.
 *
 * Sleeping and waking (futexes are shared, not private; every wait has a timeout)
 *   consumer idle:   consumer_sleeping = 1; look again at head, flush_request;
 *                    FUTEX_WAIT(wake_futex, value read before); consumer_sleeping = 0
 *   producers:       wake_futex += 1 and, if consumer_sleeping, FUTEX_WAKE: whenever a
 *                    reservation enters another eighth of the ring, when the ring is full,
 *                    and with each flush_request
 *   ring full:       producer: producers_waiting += 1; FUTEX_WAIT(space_futex); -= 1
 *                    consumer: after moving tail, if producers_waiting: space_futex += 1,
 * FUTEX_WAKE(all) program's end:   producer: flush_request += 1, wake; FUTEX_WAIT(drain_futex)
 * until drained >= the head it saw, or the collector has failed or is done consumer: after each
 * write to the file: drained = position; drain_futex += 1, FUTEX_WAKE(all) All of these are
 * sequentially consistent: each side stores its own word before it loads the other's.
 */
#ifndef VS_FORMATS_RING_H
#define VS_FORMATS_RING_H

#include <stdatomic.h>
#include <stdint.h>

#include "record.h"

#define VS_RING_MAGIC 0x31474e4952535656ULL /* "VVSRING1" */
#define VS_RING_VERSION 2U
#define VS_CELL_BYTES 64U
#define VS_CELL_FIRST_BODY 48U  /* body bytes of a record's first cell */
#define VS_CELL_NEXT_BODY 56U   /* body bytes of each further cell */
#define VS_RECORD_MAX_CELLS 96U /* about 5 KiB: a path, a deep stack */
#define VS_RING_HEADER_BYTES 262144U
#define VS_RING_LOSS_KINDS 128U /* counters are kept per kind (index = enum vs_kind) */
#define VS_RING_DEVICES 17U     /* devices 0..15, and one slot for unknown or higher */

/* What a record is; the first byte of its body header. */
enum vs_record_type {
    VS_RECORD_EVENT = 1,  /* struct vs_event */
    VS_RECORD_STRING = 2, /* a name: id and bytes (call names, marks, phases) */
    VS_RECORD_THREAD = 3, /* a thread's name */
    VS_RECORD_MODULE = 4, /* a mapped object: id, range, generation, path */
    VS_RECORD_DEVICE = 5, /* identity of a device, struct vs_record_device */
    VS_RECORD_STACK = 6,  /* frames of a stack id: struct vs_record_stack, then words */
    VS_RECORD_PAD = 7,    /* nothing: skipped */
    VS_RECORD_CODE = 8    /* a code object of an interpreter: struct vs_record_code, name, file */
};

/* claim word: lap of the ring 32 | cells 8 | thread 24. Thread ids are below 2^22 on Linux. */
#define VS_CLAIM(position, cells, thread, shift)                             \
    ((((uint64_t)(position) >> (shift)) << 32) | ((uint64_t)(cells) << 24) | \
     ((uint64_t)(thread)&0xffffffU))
#define VS_CLAIM_LAP(claim) ((uint32_t)((claim) >> 32))
#define VS_CLAIM_CELLS(claim) ((uint32_t)((claim) >> 24) & 0xffU)
#define VS_CLAIM_THREAD(claim) ((uint32_t)(claim)&0xffffffU)

/* In the stamp of a record's first cell while the record is claimed but not committed. */
#define VS_STAMP_CLAIMED (1ULL << 63)

struct vs_cell_first {
    _Atomic uint64_t stamp;
    _Atomic uint64_t claim;
    uint8_t body[VS_CELL_FIRST_BODY];
};

struct vs_cell_next {
    _Atomic uint64_t stamp;
    uint8_t body[VS_CELL_NEXT_BODY];
};

union vs_cell {
    struct vs_cell_first first;
    struct vs_cell_next next;
};

_Static_assert(sizeof(union vs_cell) == VS_CELL_BYTES, "a cell is one cache line");

/*
 * Bodies. An event record is struct vs_event alone: 48 + 56 bytes, two cells,
 * told apart by its length (cells == 2) and the EVENT type which the kind byte
 * implies: records of two cells are always events. Every other record has three
 * or more cells and begins with struct vs_record_head (pad with zeros if short).
 */
struct vs_record_head {
    uint8_t type; /* enum vs_record_type */
    uint8_t reserved[3];
    uint32_t id;    /* string / module / stack id, device ordinal, thread id */
    uint32_t bytes; /* of the payload that follows this head */
    uint32_t aux;   /* STRING: 0; MODULE: generation; STACK: frame count; THREAD: 0 */
};

/* Payload of MODULE before its path (no terminating zero). */
struct vs_record_module {
    uint64_t start;
    uint64_t end;
    uint64_t load_bias;
    uint8_t build_id[20];
    uint8_t build_id_bytes;
    uint8_t reserved[3];
};

struct vs_record_device {
    uint8_t uuid[16];
    uint8_t mig_uuid[16]; /* zeros: not a MIG slice */
    uint64_t total_bytes;
    char pci_id[16]; /* "0000:01:00.0" */
    char name[64];
    uint32_t integrated;
    int32_t driver_version;
};

/* Payload of STACK before its words (formats/frame_word.h), of which `aux` says how many. */
struct vs_record_stack {
    uint32_t generation; /* of the module map: compare vs_record_head.aux of MODULE */
    uint32_t reserved;
};

/* Payload of CODE before the qualified name and, up to its end, the file name (UTF-8). */
struct vs_record_code {
    uint32_t first_line;
    uint32_t name_bytes;
};

/* How native frames are found, in the header and in META (chosen by a self-test). */
enum vs_native_method {
    VS_NATIVE_OFF = 0,           /* not wanted, or nothing was captured yet */
    VS_NATIVE_TABLES = 1,        /* unwind tables */
    VS_NATIVE_FRAME_POINTERS = 2 /* frame pointers, proved against the tables on each new stack */
};

enum vs_python_state {
    VS_PYTHON_NONE = 0,        /* no Python in the process, or not wanted */
    VS_PYTHON_READY = 1,       /* frames are read */
    VS_PYTHON_UNSUPPORTED = 2, /* a version that is not known: native stacks only */
    VS_PYTHON_FINALIZED = 3    /* was ready; the interpreter has shut down */
};

/* Counters of what was lost: in the header, so that they survive the target. */
struct vs_loss_counter {
    _Atomic uint64_t events;
    _Atomic uint64_t bytes;
};

struct vs_ring_header {
    /* set once before the collector starts */
    uint64_t magic;
    uint32_t version;
    uint32_t header_bytes;
    uint64_t cell_count; /* power of two */
    uint32_t cell_shift; /* log2(cell_count) */
    uint32_t pid;        /* of the target, in its own namespace */
    uint64_t start_monotonic_ns;
    uint64_t start_boot_ns;
    uint64_t start_real_ns;
    uint64_t page_bytes;
    uint32_t forked_from; /* pid of the traced process this one is a fork of; 0 none */
    uint32_t parent;      /* the target's parent when recording began, in the target's namespace */

    /* producers */
    _Alignas(128) _Atomic uint64_t head;
    _Atomic uint64_t
        tail_seen; /* producers' copy of tail, never ahead of it; the consumer ignores it */
    /* consumer */
    _Alignas(128) _Atomic uint64_t tail;
    _Atomic uint64_t consumer_progress_ns; /* CLOCK_MONOTONIC of the last advance */
    _Atomic uint64_t drained;              /* every position below it is in the file (written) */
    _Atomic uint32_t drain_futex;     /* bumped after each write; waited on at the program's end */
    _Atomic uint32_t collector_state; /* enum vs_collector_state */
    /* producers → consumer: wake-ups */
    _Alignas(128) _Atomic uint32_t wake_futex; /* bumped by who wants the consumer now */
    _Atomic uint32_t flush_request;            /* bumped: write everything at once (OOM, exit) */
    _Atomic uint32_t consumer_sleeping;
    _Atomic uint32_t space_futex;       /* bumped when tail moved and somebody waits for room */
    _Atomic uint32_t producers_waiting; /* threads asleep on space_futex */
    /* accounting, relaxed adds */
    _Alignas(128) _Atomic uint64_t waited_ns; /* over all threads, for room in the ring */
    _Atomic uint64_t last_loss_position;      /* head at the latest loss: it lies before this */
    _Atomic uint64_t spent_ns; /* measured time inside the shim, sampled 1 in 64 and scaled */
    _Atomic uint64_t spent_samples;
    _Atomic uint64_t sample_spent_ns; /* spent in cuMemGetInfo of our own */
    _Atomic uint64_t missing_real;    /* calls whose real entry point came from the start table */
    _Atomic uint64_t abandoned_hooks; /* siglongjmp/cancellation out of a hook */
    _Atomic uint64_t driver_calls;
    _Atomic uint64_t runtime_calls;
    _Atomic uint64_t framework_calls;
    _Atomic uint32_t end_kind; /* enum vs_end, set by the shim when it sees the end coming */
    _Atomic int32_t end_value; /* exit status */
    _Atomic uint64_t end_ns;
    _Atomic uint32_t static_runtimes; /* look-ups by a CUDA runtime inside another library */
    _Atomic uint32_t
        hook_warnings; /* bit set, enum vs_hook_warning in shim.h; text in docs/hooks.md */
    _Atomic uint32_t native_method;  /* enum vs_native_method */
    _Atomic uint32_t python_state;   /* enum vs_python_state */
    _Atomic uint32_t python_version; /* as PY_VERSION_HEX; 0 not known */
    _Atomic uint64_t stacks_sent;    /* stack records, the repeated ones included */
    _Atomic uint64_t stacks_inline;  /* of these, sent because the table had no room or was busy */
    _Atomic uint64_t stacks_lost;    /* stacks whose record found no room: events without a stack */
    _Atomic uint64_t native_stopped; /* stacks that could not be followed to the thread's start */
    _Atomic uint64_t nvtx_left_out;  /* ranges and marks of domains for whose name was no room */
    _Atomic uint64_t nvtx_unnamed;   /* recorded without the registered name that had no room */

    /*
     * collector → program: the collector has no stderr, so the shim prints this line (prefixed
     * "vramscope: ") when collector_messages moves: text first, then the counter (release).
     */
    _Alignas(128) _Atomic uint32_t collector_messages;
    char collector_message[508];

    _Alignas(128) struct vs_loss_counter loss[VS_LOSS_CAUSES][VS_RING_DEVICES][VS_RING_LOSS_KINDS];
};

_Static_assert(sizeof(struct vs_ring_header) <= VS_RING_HEADER_BYTES, "header fits its room");

enum vs_collector_state {
    VS_COLLECTOR_STARTING =
        0, /* the shim waits for the next state, at most 250 ms, when it starts */
    VS_COLLECTOR_READY = 1,
    VS_COLLECTOR_FAILED = 2, /* cannot write; drains and discards, counting */
    VS_COLLECTOR_DONE = 3
};

#endif
