/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One event: what the shim writes into the ring, what the collector writes into
 * the trace, what the reader hands to replay. Fixed-width fields only, no
 * pointers, little-endian hosts. The kinds are one table, from which names, the
 * trace format's documentation and the exporters are generated.
 */
#ifndef VS_FORMATS_RECORD_H
#define VS_FORMATS_RECORD_H

#include <stdint.h>

/* ---- kinds ----------------------------------------------------------------
 * VS_KIND(value, NAME, "name", layer, "what address/size/handle/extra mean")
 *
 * Values are part of the trace format: never renumbered, never reused. Each
 * kind says how it uses the general fields; fields it does not name are 0.
 *
 *   layer  D driver memory (moves bytes or ranges)   H host memory
 *          O order (no bytes of its own)             F framework
 *          M made by the shim or the collector (measurement, loss, process)
 */
/* clang-format off */
#define VS_KIND_TABLE(X)                                                                           \
    X(1, ALLOC, "alloc", 'D', "address; size asked for; extra[0] = granted pitch or 0")            \
    X(2, FREE, "free", 'D', "address; size 0, after a loss in this trace what it frees")           \
    X(3, UNDO, "undo", 'M',                                                                        \
      "takes back an earlier record that turned out to fail: handle = its sequence; result = why") \
    X(4, POOL_ALLOC, "pool_alloc", 'D',                                                            \
      "address; size; stream; pool; extra[0]/[1] = pool reserved/used bytes after, ~0 unknown")    \
    X(5, POOL_FREE, "pool_free", 'D', "address; stream; pool 0 when unknown")                      \
    X(6, POOL_CREATE, "pool_create", 'D', "pool; extra[0] = location type; extra[1] = max size")   \
    X(7, POOL_DESTROY, "pool_destroy", 'D', "pool")                                                \
    X(8, POOL_TRIM, "pool_trim", 'D',                                                              \
      "pool; size = bytes to keep; extra[0]/[1] = pool reserved/used bytes after")                 \
    X(9, POOL_SET, "pool_set", 'D', "pool; handle = attribute; size = value")                      \
    X(10, RESERVE, "reserve", 'D', "address; size (range of addresses, no memory)")                \
    X(11, UNRESERVE, "unreserve", 'D', "address; size")                                            \
    X(12, PHYS_CREATE, "phys_create", 'D',                                                         \
      "handle; size; extra[0] = location type (1 device, else host); device = location id")        \
    X(13, PHYS_RELEASE, "phys_release", 'D', "handle")                                             \
    X(14, PHYS_RETAIN, "phys_retain", 'D', "handle got back; address asked about")                 \
    X(15, PHYS_IMPORT, "phys_import", 'D', "handle (memory of another process or of a descriptor)") \
    X(16, PHYS_EXPORT, "phys_export", 'D', "handle; extra[0] = handle type")                       \
    X(17, MAP, "map", 'D', "address; size; handle; extra[0] = offset in the handle")               \
    X(18, UNMAP, "unmap", 'D', "address; size")                                                    \
    X(19, SET_ACCESS, "set_access", 'O', "address; size; extra[0] = location id of the first")     \
    X(20, HOST_ALLOC, "host_alloc", 'H', "address; size; extra[0] = flags")                        \
    X(21, HOST_FREE, "host_free", 'H', "address; size 0, after a loss in this trace what it frees") \
    X(22, HOST_REGISTER, "host_register", 'H', "address; size; extra[0] = flags")                  \
    X(23, HOST_UNREGISTER, "host_unregister", 'H',                                                 \
      "address; size 0, after a loss in this trace what it frees")                                 \
    X(24, IPC_GET, "ipc_get", 'D', "address; extra[0] = hash of the handle's 64 bytes")            \
    X(25, IPC_OPEN, "ipc_open", 'D', "address; extra[0] = hash of the handle's 64 bytes")          \
    X(26, IPC_CLOSE, "ipc_close", 'D', "address")                                                  \
    X(27, ARRAY_CREATE, "array_create", 'D',                                                       \
      "handle = array; size = bytes by its descriptor (what the device rounds is not known)")      \
    X(28, ARRAY_DESTROY, "array_destroy", 'D', "handle")                                           \
    X(29, EXTERNAL_IMPORT, "external_import", 'D', "handle; size (memory of another API)")         \
    X(30, EXTERNAL_MAP, "external_map", 'D', "address; size; handle")                              \
    X(31, EXTERNAL_DESTROY, "external_destroy", 'D', "handle")                                     \
    X(32, MULTICAST_CREATE, "multicast_create", 'D', "handle; size (owns no memory)")              \
    X(33, MULTICAST_BIND, "multicast_bind", 'D', "handle; size; address or extra[0] = memory")     \
    X(34, MULTICAST_UNBIND, "multicast_unbind", 'D', "handle; size")                               \
    X(35, GRAPH_ALLOC_NODE, "graph_alloc_node", 'O', "address; size; handle = graph")              \
    X(36, GRAPH_FREE_NODE, "graph_free_node", 'O', "address; handle = graph")                      \
    X(37, GRAPH_TRIM, "graph_trim", 'D', "device")                                                 \
    X(38, CONTEXT_CREATE, "context_create", 'D', "context")                                        \
    X(39, CONTEXT_DESTROY, "context_destroy", 'D', "context")                                      \
    X(40, CONTEXT_RETAIN, "context_retain", 'D', "context (a device's primary one)")               \
    X(41, CONTEXT_RELEASE, "context_release", 'D', "device")                                       \
    X(42, CONTEXT_RESET, "context_reset", 'D', "device: everything of it is gone")                 \
    X(43, LIMIT_SET, "limit_set", 'D', "handle = limit; size = value")                             \
    X(44, MEM_INFO, "mem_info", 'M', "the program's own question; size = total; free_bytes")       \
    X(45, MODULE_LOAD, "module_load", 'D', "handle")                                               \
    X(46, MODULE_UNLOAD, "module_unload", 'D', "handle")                                           \
    X(47, STREAM_CREATE, "stream_create", 'O', "stream; extra[0] = flags")                         \
    X(48, STREAM_DESTROY, "stream_destroy", 'O', "stream")                                         \
    X(49, EVENT_RECORD, "event_record", 'O', "handle = event; stream")                             \
    X(50, EVENT_QUERY, "event_query", 'O', "handle = event; result 0 = complete, 600 = not yet")   \
    X(51, EVENT_DESTROY, "event_destroy", 'O', "handle = event")                                   \
    X(52, CAPTURE_BEGIN, "capture_begin", 'O', "stream; extra[0] = mode")                          \
    X(53, CAPTURE_END, "capture_end", 'O', "stream; handle = graph")                               \
    X(54, GRAPH_INSTANTIATE, "graph_instantiate", 'D', "handle = executable; extra[0] = graph")    \
    X(55, GRAPH_LAUNCH, "graph_launch", 'O', "handle = executable; stream")                        \
    X(56, GRAPH_EXEC_DESTROY, "graph_exec_destroy", 'D', "handle = executable")                    \
    X(57, GRAPH_DESTROY, "graph_destroy", 'O', "handle = graph")                                   \
    X(58, DEVICE_SET, "device_set", 'O', "device")                                                 \
    X(59, OTHER_CALL, "other_call", 'O', "a listed call whose failure matters but not its bytes")  \
    X(60, GRAPH_UPLOAD, "graph_upload", 'O', "handle = executable; stream")                        \
    X(61, COMM_BEGIN, "comm_begin", 'O',                                                           \
      "a communicator is about to be made: handle = its parent; size = ranks, 0 unknown; extra[0] " \
      "= rank, ~0 unknown")                                                                        \
    X(62, COMM_CREATE, "comm_create", 'O',                                                         \
      "handle, 0 unknown; size = ranks, 0 unknown; extra[0] = sequence of its comm_begin; "        \
      "extra[1] = rank, ~0 unknown; result 0 or NCCL's + 20000")                                   \
    X(63, COMM_DESTROY, "comm_destroy", 'O', "handle; result as of comm_create")                   \
    X(64, MEM_POOL_ID, "mem_pool_id", 'O',                                                         \
      "a framework was asked for the id of a pool: handle = the pool; extra[0]/[1] = its id; "     \
      "pool = 1 where a use of it is of all threads")                                              \
    X(65, MEM_POOL_DESTROY, "mem_pool_destroy", 'O', "handle = the pool")                          \
    X(80, FW_ALLOC, "fw_alloc", 'F',                                                               \
      "address; size = block; stream if handle is 1; extra[0]/[1] = the framework's own "          \
      "allocated/reserved after")                                                                  \
    X(81, FW_FREE, "fw_free", 'F',                                                                 \
      "address; size = block; extra[0]/[1] = the framework's own allocated/reserved after")        \
    X(82, FW_OOM, "fw_oom", 'F',                                                                   \
      "size = request (rounded by the framework); stream if handle is 1; extra[0]/[1] = its "      \
      "allocated/reserved")                                                                        \
    X(83, FW_HOST_ALLOC, "fw_host_alloc", 'F', "address; size (a framework's report of CPU memory)") \
    X(84, FW_HOST_FREE, "fw_host_free", 'F', "address; size")                                      \
    X(100, SAMPLE, "sample", 'M',                                                                  \
      "device; size = total; free_bytes (real cuMemGetInfo, called at the event's time)")          \
    X(101, OTHER_PROCESS, "other_process", 'M',                                                    \
      "device; handle = pid; size = bytes, by NVML; handle 0: its first answer, size processes "   \
      "follow")                                                                                    \
    X(102, MARK, "mark", 'M', "extra[0] = string id of the text")                                  \
    X(103, STEP, "step", 'M', "size = step number")                                                \
    X(104, PHASE_BEGIN, "phase_begin", 'M',                                                        \
      "extra[0] = string id of the name; extra[1] = id of a phase that any thread may end, or 0: " \
      "it nests in its thread, apart for each handle")                                             \
    X(105, PHASE_END, "phase_end", 'M',                                                            \
      "of the phase with id extra[1]; 0: of the thread's innermost one with this handle")          \
    X(106, LOSS, "loss", 'M',                                                                      \
      "handle = enum vs_loss_cause; size = bytes; extra[0] = events; call's kind in `label`")      \
    X(107, TORN, "torn", 'M', "extra[0] = cells passed over; thread = who left them")              \
    X(108, FORKED, "forked", 'M', "handle = child pid, when the shim saw the fork")                \
    X(109, HOST_SAMPLE, "host_sample", 'M',                                                        \
      "size = resident bytes of the process; extra[0] = cgroup bytes; extra[1] = cgroup limit")    \
    X(110, PROCESS_END, "process_end", 'M',                                                        \
      "handle = enum vs_end; size = exit status or signal")                                        \
    X(111, CUT, "cut", 'M',                                                                        \
      "size = events taken out between here and the next cut_end; extra[0] = its time")            \
    X(112, CUT_END, "cut_end", 'M', "")                                                            \
    X(113, HOST_SHARED, "host_shared", 'M',                                                        \
      "size = bytes of files in /dev/shm that the process and its children have; extra[0] = of "   \
      "them PyTorch's; extra[1] = files")                                                          \
    X(114, HOST_RECLAIMABLE, "host_reclaimable", 'M',                                              \
      "size = bytes of the host's memory that are available but not free; extra[0] = available; "  \
      "extra[1] = free (where a device shares the host's memory)")                                 \
    X(115, HOST_OOM_KILLS, "host_oom_kills", 'M',                                                  \
      "size = processes of the program's memory control group that the kernel killed for want "    \
      "of memory, since the recording began")
/* clang-format on */

enum vs_kind {
#define VS_KIND_ENUM(value, NAME, name, layer, meaning) VS_KIND_##NAME = value,
    VS_KIND_TABLE(VS_KIND_ENUM)
#undef VS_KIND_ENUM
};

/* Why events were lost, in LOSS records and in the ring's counters. */
enum vs_loss_cause {
    VS_LOSS_FULL_WAITED = 0, /* ring full, the bounded wait ran out */
    VS_LOSS_FULL_DROP,       /* ring full, VRAMSCOPE_WHEN_FULL=drop */
    VS_LOSS_STALLED,         /* ring full, the consumer made no progress */
    VS_LOSS_NESTED,          /* ring full inside a nested hook, which never waits */
    VS_LOSS_TOO_LARGE,       /* a record longer than the ring allows */
    VS_LOSS_FORKED,          /* between a raw fork and the child's new ring */
    VS_LOSS_CAUSES
};

/* How a process ended, in PROCESS_END. */
enum vs_end { VS_END_UNKNOWN = 0, VS_END_EXIT = 1, VS_END_KILLED = 2, VS_END_EXEC = 3 };

/* ---- the event ------------------------------------------------------------ */

enum vs_event_flags {
    VS_EVENT_MANAGED = 1U << 0,   /* cuMemAllocManaged and its kin */
    VS_EVENT_CAPTURING = 1U << 1, /* the stream was being captured: a node, no memory yet */
    VS_EVENT_RUNTIME = 1U << 2,   /* recorded at runtime level: no driver call was seen beneath */
    VS_EVENT_NESTED = 1U << 3, /* recorded by a hook that ran inside another hook's bookkeeping */
    VS_EVENT_INTENT = 1U << 4, /* recorded before the real call (frees); UNDO follows on failure */
    VS_EVENT_REAL_MISSING = 1U << 5, /* the real entry point came from the table filled at start */
    /* free_bytes was measured after the event's time, within VS_SAMPLED_WITHIN_NS (SAMPLE:
       duration_ns) */
    VS_EVENT_FREE_SAMPLED = 1U << 6,
    VS_EVENT_PINNED_PORTABLE = 1U << 7,
};

/* NCCL's results are its own numbers: kept apart from CUDA's by this offset. */
#define VS_NCCL_RESULTS 20000

#define VS_SAMPLED_WITHIN_NS 200000U /* a measurement that took longer is a SAMPLE of its own */
#define VS_FREE_UNKNOWN UINT64_MAX   /* free_bytes not measured */
#define VS_DEVICE_UNKNOWN (-1)

/*
 * 104 bytes: the body of two ring cells exactly. Times are CLOCK_MONOTONIC
 * nanoseconds. Handles, contexts, streams and pools are the program's own
 * values (CUDA handles), meaningful only inside one process.
 */
struct vs_event {
    uint64_t time_ns;
    uint64_t address;
    uint64_t size;
    uint64_t stream;
    uint64_t context;
    uint64_t pool;
    uint64_t handle;
    uint64_t extra[2];
    uint64_t free_bytes;  /* of `device`, VS_FREE_UNKNOWN when not measured */
    uint32_t duration_ns; /* of the real call; saturates */
    int32_t result;       /* CUresult / cudaError_t of the call; 0 for intents */
    uint32_t module;      /* module id of the outermost call's caller; 0 unknown */
    uint32_t stack;       /* stack id; 0 none */
    uint16_t call;        /* string id of the innermost entry point's name; 0 none */
    uint16_t label; /* string id of the outermost entry point's name; equals call if not nested */
    uint8_t kind;   /* enum vs_kind */
    int8_t device;  /* this process's ordinal of the device; VS_DEVICE_UNKNOWN */
    uint16_t flags; /* enum vs_event_flags */
};

_Static_assert(sizeof(struct vs_event) == 104, "two ring cells hold one event");

/*
 * What a reader or the collector adds to an event: its place in the order and
 * the thread, both taken from the ring cell.
 */
struct vs_sequenced_event {
    uint64_t
        sequence; /* ring position of the record's first cell: unique, increasing, gaps = `cells` */
    uint32_t thread; /* kernel thread id */
    uint32_t cells; /* ring cells the record took: the next record's sequence is sequence + cells */
    struct vs_event event;
};

/* Name of a kind ("alloc"), or "unknown" for a value this build does not know. */
const char *vs_kind_name(unsigned kind);
/* 'D','H','O','F','M' as in the table; 0 for an unknown kind. */
char vs_kind_layer(unsigned kind);

#endif
