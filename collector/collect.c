/* SPDX-License-Identifier: Apache-2.0 */
/* The collector's loop and its end. */
#include "collect.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "futex.h"
#include "host_memory.h"
#include "name.h"
#include "process.h"
#include "settings.h"

#define NS_PER_MS 1000000ULL
#define NS_PER_SECOND 1000000000ULL
#define SAMPLE_EVERY_NS NS_PER_SECOND
#define SHARED_SHARE 200U                /* a look at /dev/shm may take this part of the time */
#define SAMPLE_CHANGE_BYTES (1ULL << 20) /* a smaller change of the resident size is no news */
#define FACTS_EVERY_NS (2 * NS_PER_SECOND)
#define ASK_NVML_EVERY_NS (100 * NS_PER_MS)
#define NVML_LAST_ANSWER_MS 300U
#define LAST_NAMES_MS 1200U
#define REPLACED_CHECK_EVERY_NS (2 * NS_PER_SECOND)
#define EXEC_CHECK_EVERY_NS (20 * NS_PER_MS) /* once the target said that it will exec */
#define SLEEP_LEAST_NS (2 * NS_PER_MS)
#define IDLE_SLEEP_MOST_NS NS_PER_SECOND
#define BLOCKED_SLEEP_MOST_NS (20 * NS_PER_MS)
#define RELEASES_PER_LAP 16U
#define NVML_REPORTS_AT_ONCE 64U
#define POPULATE_MOST_BYTES \
    (64ULL << 20) /* of the ring, in some 20 ms: it is not drained meanwhile */

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

/* ---- events of the collector's own ---------------------------------------------- */

static int inject(struct collect *collect, struct vs_event *event)
{
    event->time_ns = now_ns();
    event->free_bytes = VS_FREE_UNKNOWN;
    return drain_inject(&collect->drain, event);
}

static bool changed_much(uint64_t a, uint64_t b)
{
    return (a > b ? a - b : b - a) >= SAMPLE_CHANGE_BYTES;
}

/* `must`: though it has hardly changed. */
static void sample_memory(struct collect *collect, bool must)
{
    struct target_memory memory;
    const struct target_memory *last = &collect->last_memory;
    if (target_memory(&collect->target, &memory) < 0 ||
        (!must && !changed_much(memory.resident_bytes, last->resident_bytes) &&
         !changed_much(memory.cgroup_bytes, last->cgroup_bytes) &&
         memory.cgroup_limit_bytes == last->cgroup_limit_bytes))
        return;
    struct vs_event event = {.kind = VS_KIND_HOST_SAMPLE,
                             .device = VS_DEVICE_UNKNOWN,
                             .size = memory.resident_bytes,
                             .extra = {memory.cgroup_bytes, memory.cgroup_limit_bytes}};
    if (inject(collect, &event) == 0)
        collect->last_memory = memory;
}

/* What the process and its children have in /dev/shm; `must`: though it was looked at just now. */
static void sample_shared(struct collect *collect, bool must)
{
    struct shared_files shared;
    const struct shared_files *last = &collect->last_shared;
    uint64_t begun = now_ns();
    if (collect->target.visible_pid == 0 || (!must && begun < collect->next_shared_ns))
        return;
    int result = shared_files_measure(collect->target.visible_pid, &shared);
    collect->next_shared_ns = begun + (now_ns() - begun) * SHARED_SHARE;
    if (result < 0 || (collect->shared_known && shared.bytes == last->bytes &&
                       shared.torch_bytes == last->torch_bytes && shared.count == last->count))
        return;
    struct vs_event event = {.kind = VS_KIND_HOST_SHARED,
                             .device = VS_DEVICE_UNKNOWN,
                             .size = shared.bytes,
                             .extra = {shared.torch_bytes, shared.count}};
    if (inject(collect, &event) == 0) {
        collect->last_shared = shared;
        collect->shared_known = true;
    }
}

/* What the kernel can give back, where a device shares the host's memory: its free figure lacks it.
 */
static void sample_reclaimable(struct collect *collect, bool must)
{
    struct host_memory memory;
    if (!collect->records.integrated || host_memory_measure(&memory) < 0 ||
        (!must && !changed_much(memory.reclaimable_bytes, collect->last_reclaimable_bytes)))
        return;
    struct vs_event event = {.kind = VS_KIND_HOST_RECLAIMABLE,
                             .device = VS_DEVICE_UNKNOWN,
                             .size = memory.reclaimable_bytes,
                             .extra = {memory.available_bytes, memory.free_bytes}};
    if (inject(collect, &event) == 0) {
        collect->last_reclaimable_bytes = memory.reclaimable_bytes;
        collect->reclaimable_known = true;
    }
}

/* The kernel's out-of-memory killer leaves no other trace of a worker's end, or of ours. */
static void sample_oom_kills(struct collect *collect)
{
    struct vs_event event = {.kind = VS_KIND_HOST_OOM_KILLS, .device = VS_DEVICE_UNKNOWN};
    if (oom_kills_more(&collect->oom_kills, &event.size))
        inject(collect, &event);
}

static void report_other_processes(struct collect *collect)
{
    struct nvml_use uses[NVML_REPORTS_AT_ONCE];
    unsigned count = collect->nvml ? nvml_take(collect->nvml, uses, NVML_REPORTS_AT_ONCE) : 0;
    for (unsigned i = 0; i < count; i++) {
        struct vs_event event = {.kind = VS_KIND_OTHER_PROCESS,
                                 .device = (int8_t)uses[i].device,
                                 .handle = uses[i].pid,
                                 .size = uses[i].bytes};
        json_t *who = uses[i].bytes != 0
                          ? others_name(&collect->others, uses[i].pid, collect->options.hide)
                          : NULL;
        inject(collect, &event);
        if (who)
            output_meta(&collect->output, "others", who);
    }
}

static void ask_other_processes(struct collect *collect, uint64_t now)
{
    if (!collect->nvml || now - collect->last_asked_ns < ASK_NVML_EVERY_NS)
        return;
    collect->last_asked_ns = now;
    nvml_ask(collect->nvml);
}

static void watch_device(void *context, int device, const uint8_t uuid[16])
{
    struct collect *collect = context;
    if (collect->nvml)
        nvml_add_device(collect->nvml, device, uuid);
}

/* ---- writing ---------------------------------------------------------------------- */

static void tell_run(struct collect *collect)
{
    struct rundir_outcome *outcome = &collect->outcome;
    outcome->bytes = collect->output.bytes;
    outcome->events = collect->output.events;
    outcome->lost = collect->loss.all.events;
    outcome->torn = collect->drain.torn_records;
    rundir_tell(&collect->report, outcome);
}

/* The shim prints it on the program's standard error. */
static void tell_program(struct collect *collect, const struct vs_error *error)
{
    struct vs_ring_header *header = collect->drain.header;
    snprintf(header->collector_message, sizeof header->collector_message, "%.*s",
             (int)sizeof header->collector_message - 1, error->text);
    /* Release: whoever sees the counter move sees the text. */
    atomic_fetch_add_explicit(&header->collector_messages, 1, memory_order_release);
}

/* Says once that nothing can be written: to the program's side of the ring, and to `vramscope run`.
 */
static void tell_failure(struct collect *collect, const struct vs_error *error)
{
    collect->failure_told = true;
    tell_program(collect, error);
    atomic_store(&collect->drain.header->collector_state, VS_COLLECTOR_FAILED);
    snprintf(collect->outcome.warning, sizeof collect->outcome.warning, "%s", error->text);
    tell_run(collect);
}

static void note_drained(struct collect *collect)
{
    struct vs_ring_header *header = collect->drain.header;
    atomic_store(&header->drained, collect->drain.released);
    atomic_fetch_add(&header->drain_futex, 1);
    futex_wake_all(&header->drain_futex);
}

static void write_facts(struct collect *collect)
{
    struct hooks_figures figures = {.recorded = collect->records.taken,
                                    .bad_records = collect->records.bad,
                                    .lost = collect->loss.all.events,
                                    .torn = collect->drain.torn_records,
                                    .ring_bytes = collect->ring_bytes};
    json_t *hooks = process_hooks_json(collect->drain.header, &figures);
    if (hooks && collect->nvml) {
        char status[64];
        nvml_status(collect->nvml, status, sizeof status);
        json_object_set_new(hooks, "nvml", json_string(status));
    }
    output_meta(&collect->output, "hooks", hooks);
    output_meta(&collect->output, "clock", process_clock_now_json());
    output_meta(&collect->output, "process", process_driver_json(collect->records.driver_version));
    output_meta(&collect->output, "process", process_runtimes_json(&collect->records.runtimes));
    if (collect->symbolizer)
        output_meta(&collect->output, "symbols", symbolizer_json(collect->symbolizer));
}

static void write_end(struct collect *collect, const struct end *end)
{
    json_t *object = end_json(end);
    uint64_t at_ns = atomic_load(&collect->drain.header->end_ns);
    if (object)
        json_object_set_new(object, "at_ns", json_integer((json_int_t)(at_ns ? at_ns : now_ns())));
    output_meta(&collect->output, "end", object);
}

static struct end_evidence evidence(const struct collect *collect)
{
    struct vs_ring_header *header = collect->drain.header;
    uint32_t mark = atomic_load(&header->end_kind);
    return (struct end_evidence){.mark = mark <= VS_END_EXEC ? (enum vs_end)mark : VS_END_UNKNOWN,
                                 .mark_value = atomic_load(&header->end_value),
                                 .replaced = collect->replaced};
}

/* A program that said it ends may take us with it (a container's first process): its end is written
 * now. */
static void write_announced_end(struct collect *collect)
{
    struct end_evidence known = evidence(collect);
    known.running = true;
    struct end end = end_decide(&known);
    if (end.ended != VS_END_UNKNOWN)
        write_end(collect, &end);
}

static void flush(struct collect *collect, uint64_t now)
{
    bool announced = atomic_load(&collect->drain.header->end_kind) != VS_END_UNKNOWN;
    if (announced || now - collect->last_facts_ns >= FACTS_EVERY_NS) {
        collect->last_facts_ns = now;
        write_facts(collect);
        if (announced)
            write_announced_end(collect);
        tell_run(collect);
    }
    output_flush(&collect->output);
    collect->pending = false;
    collect->last_flush_ns = now_ns();
    note_drained(collect);
    if (collect->output.error && !collect->failure_told) {
        struct vs_error error;
        output_describe_error(&collect->output, &error);
        tell_failure(collect, &error);
    }
}

/* ---- one pass ------------------------------------------------------------------------ */

static uint64_t flush_deadline(const struct collect *collect)
{
    /* A quarter is kept for the writing itself. */
    return collect->last_flush_ns + collect->options.flush_ns / 4 * 3;
}

static void take_one(struct collect *collect, enum drain_result result)
{
    if (result == DRAIN_RECORD)
        records_take(&collect->records, &collect->record);
    else
        records_torn(&collect->records, &collect->record, now_ns());
    collect->pending = true;
}

/* Takes what is there, at most one lap's worth, so that time to flush is never overslept. */
static void drain_some(struct collect *collect)
{
    struct drain *drain = &collect->drain;
    uint64_t stop = drain->position + drain->cell_count;
    enum drain_result result = DRAIN_EMPTY;
    while (drain->position < stop) {
        result = drain_next(drain, &collect->record);
        if (result == DRAIN_EMPTY || result == DRAIN_BLOCKED)
            break;
        take_one(collect, result);
        if (drain->position - drain->released >= drain->cell_count / RELEASES_PER_LAP)
            drain_release(drain, now_ns());
    }
    drain_release(drain, now_ns());
    collect->blocked = result == DRAIN_BLOCKED;
}

static void make_own_events(struct collect *collect, uint64_t now)
{
    loss_emit(&collect->loss, &collect->drain, now);
    report_other_processes(collect);
    if (!collect->reclaimable_known)
        sample_reclaimable(collect, true);
    if (now - collect->last_sample_ns >= SAMPLE_EVERY_NS) {
        collect->last_sample_ns = now;
        sample_memory(collect, false);
        sample_reclaimable(collect, false);
        sample_shared(collect, false);
        sample_oom_kills(collect);
        target_title(&collect->target, collect->title, sizeof collect->title);
    }
}

/* What the process has when it says that it ends; it waits for us while we look. */
static void sample_at_end(struct collect *collect)
{
    if (collect->sampled_end || atomic_load(&collect->drain.header->end_kind) == VS_END_UNKNOWN)
        return;
    collect->sampled_end = true;
    sample_memory(collect, true);
    sample_reclaimable(collect, true);
    sample_shared(collect, true);
    sample_oom_kills(collect);
    drain_some(collect);
}

static void pass(struct collect *collect)
{
    uint64_t now = now_ns();
    uint32_t requests = atomic_load(&collect->drain.header->flush_request);
    bool asked = requests != collect->flushes_answered;
    make_own_events(collect, now);
    drain_some(collect);
    sample_at_end(collect);
    if (collect->symbolizer && symbolizer_take(collect->symbolizer))
        collect->pending = true;
    if (collect->records.urgent) {
        ask_other_processes(collect, now);
        sample_memory(collect, true);
        sample_reclaimable(collect, true);
        sample_shared(collect, false);
        collect->records.urgent = false;
        asked = true;
    }
    if (asked || (collect->pending && now_ns() >= flush_deadline(collect))) {
        flush(collect, now);
        collect->flushes_answered = requests;
    }
}

/* ---- sleeping ---------------------------------------------------------------------------- */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static bool exec_announced(const struct collect *collect)
{
    return atomic_load(&collect->drain.header->end_kind) == VS_END_EXEC;
}

/* How long until there is something to do without being woken. */
static uint64_t sleep_ns(struct collect *collect)
{
    uint64_t flush_ns = collect->options.flush_ns;
    uint64_t now = now_ns(), deadline = flush_deadline(collect);
    uint64_t sleep = collect->idle_sleep_ns;
    if (collect->pending) {
        sleep = deadline > now ? deadline - now : 0;
        collect->idle_sleep_ns = flush_ns / 4 * 3;
    } else {
        collect->idle_sleep_ns =
            least(least(flush_ns / 16 * 15, IDLE_SLEEP_MOST_NS), collect->idle_sleep_ns * 5 / 4);
    }
    collect->blocked_sleep_ns =
        collect->blocked ? least(collect->blocked_sleep_ns * 2, BLOCKED_SLEEP_MOST_NS) : NS_PER_MS;
    if (collect->blocked)
        sleep = least(sleep, collect->blocked_sleep_ns);
    if (exec_announced(collect))
        sleep = least(sleep, EXEC_CHECK_EVERY_NS);
    return sleep > SLEEP_LEAST_NS ? sleep : SLEEP_LEAST_NS;
}

/* `wake`: the futex's value before the pass, so that whoever called during it is heard. */
static void sleep_until_needed(struct collect *collect, uint32_t wake)
{
    struct vs_ring_header *header = collect->drain.header;
    uint64_t backlog = drain_backlog(&collect->drain);
    if (!collect->blocked && backlog > collect->drain.cell_count / RELEASES_PER_LAP)
        return;
    uint64_t sleep = sleep_ns(collect);
    /* Sequentially consistent, as formats/ring.h says: announce first, then look once more. */
    atomic_store(&header->consumer_sleeping, 1);
    if (atomic_load(&header->flush_request) == collect->flushes_answered &&
        !watch_is_dead(&collect->watch))
        futex_wait(&header->wake_futex, wake, sleep);
    atomic_store(&header->consumer_sleeping, 0);
}

/* ---- the end ---------------------------------------------------------------------------- */

static bool is_replaced(struct collect *collect)
{
    uint64_t now = now_ns();
    bool announced = exec_announced(collect);
    uint64_t every = announced ? EXEC_CHECK_EVERY_NS : REPLACED_CHECK_EVERY_NS;
    if (now - collect->last_replaced_check_ns < every)
        return false;
    collect->last_replaced_check_ns = now;
    if (!target_replaced(&collect->target, announced))
        return false;
    return announced || target_replaced(&collect->target, true);
}

static struct end find_end(struct collect *collect)
{
    struct end_evidence known = evidence(collect);
    known.have_status = target_wait_status(&collect->target, &known.wait_status) == 0;
    return end_decide(&known);
}

static void take_rest(struct collect *collect)
{
    do
        drain_some(collect);
    while (drain_backlog(&collect->drain) > 0);
}

static void emit_process_end(struct collect *collect, const struct end *end)
{
    int value = end->ended == VS_END_KILLED ? end->signal : end->exit_code;
    struct vs_event event = {.kind = VS_KIND_PROCESS_END,
                             .device = VS_DEVICE_UNKNOWN,
                             .handle = (uint64_t)end->ended,
                             .size = value > 0 ? (uint64_t)value : 0};
    if (!collect->records.process_end)
        inject(collect, &event);
}

static bool ended_badly(const struct end *end)
{
    return end->ended == VS_END_KILLED || end->ended == VS_END_UNKNOWN || end->exit_code > 0;
}

static void finish_outcome(struct collect *collect, const struct end *end)
{
    struct rundir_outcome *outcome = &collect->outcome;
    outcome->complete = end->complete && collect->output.error == 0;
    outcome->exit_code = end->exit_code;
    outcome->signal = end->signal;
    outcome->out_of_memory = ended_badly(end) && records_ended_out_of_memory(&collect->records);
    snprintf(outcome->ended, sizeof outcome->ended, "%s", end_name(end->ended));
}

/* The last stacks' names. All else is in the file by then: whoever kills us now costs only these.
 */
static void finish_names(struct collect *collect)
{
    if (!collect->symbolizer)
        return;
    symbolizer_settle(collect->symbolizer, LAST_NAMES_MS);
    output_meta(&collect->output, "symbols", symbolizer_json(collect->symbolizer));
}

/* Everything that nobody can change any more goes to the file, then the file is closed. */
static void finish(struct collect *collect)
{
    struct end end = find_end(collect);
    collect->drain.process_dead = true;
    take_rest(collect);
    if (collect->nvml) {
        if (collect->records.urgent)
            ask_other_processes(collect, now_ns());
        nvml_settle(collect->nvml, NVML_LAST_ANSWER_MS);
    }
    make_own_events(collect, now_ns());
    sample_oom_kills(collect);
    take_rest(collect);
    emit_process_end(collect, &end);
    take_rest(collect);
    write_facts(collect);
    output_meta(&collect->output, "process", process_title_end_json(collect->title));
    write_end(collect, &end);
    flush(collect, now_ns());
    finish_names(collect);
    finish_outcome(collect, &end);
    output_close(&collect->output, collect->outcome.complete);
}

static void leave(struct collect *collect)
{
    struct vs_ring_header *header = collect->drain.header;
    if (collect->nvml)
        nvml_stop(collect->nvml);
    if (collect->symbolizer)
        symbolizer_stop(collect->symbolizer);
    if (collect->output.error == 0 && collect->ring_path[0])
        unlink(collect->ring_path);
    atomic_store(&header->collector_state,
                 collect->output.error ? VS_COLLECTOR_FAILED : VS_COLLECTOR_DONE);
    note_drained(collect);
    collect->outcome.finished = true;
    tell_run(collect);
    rundir_leave(&collect->report);
}

void collect_run(struct collect *collect)
{
    struct vs_ring_header *header = collect->drain.header;
    for (;;) {
        uint32_t wake = atomic_load(&header->wake_futex);
        if (watch_is_dead(&collect->watch))
            break;
        pass(collect);
        collect->replaced = is_replaced(collect);
        if (collect->replaced)
            break;
        sleep_until_needed(collect, wake);
    }
    finish(collect);
    leave(collect);
}

/* ---- the start ------------------------------------------------------------------------- */

static int map_ring(struct collect *collect)
{
    struct stat ring;
    if (fstat(collect->options.ring_fd, &ring) < 0)
        return -errno;
    if (ring.st_size < (off_t)VS_RING_HEADER_BYTES)
        return -EINVAL;
    collect->ring_bytes = (uint64_t)ring.st_size;
    /* Not for the process that is asked for names. */
    fcntl(collect->options.ring_fd, F_SETFD, FD_CLOEXEC);
    if (collect->options.pidfd >= 0)
        fcntl(collect->options.pidfd, F_SETFD, FD_CLOEXEC);
    void *mapped = mmap(NULL, collect->ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                        collect->options.ring_fd, 0);
    return mapped == MAP_FAILED ? -errno : drain_open(&collect->drain, mapped, collect->ring_bytes);
}

/*
 * The program then maps 64 KiB by a page fault and not one page. The ring has its room already, so
 * this takes none; a file's pages would have to be written out. Kernels before 5.14 refuse, and the
 * program faults for each page.
 */
static void populate_ring(const struct collect *collect)
{
    if (!collect->options.ring_path)
        madvise(collect->drain.header, least(collect->ring_bytes, POPULATE_MOST_BYTES),
                MADV_POPULATE_WRITE);
}

static bool thread_gone(void *context, uint32_t thread)
{
    (void)context;
    return !target_thread_exists(thread);
}

/* Thread ids can be asked about only where the target's own id is one of ours. */
static void allow_thread_questions(struct collect *collect)
{
    if (target_thread_exists(collect->drain.header->pid))
        collect->drain.thread_gone = thread_gone;
}

static void open_output(struct collect *collect, const char *const *environment)
{
    char executable[PATH_MAX] = "", host[65], path[PATH_MAX];
    struct vs_error error = {{0}};
    target_executable(&collect->target, executable, sizeof executable);
    process_host(host, sizeof host, collect->options.hide);
    struct name_facts facts = {.executable = executable,
                               .host = host,
                               .rank = settings_rank(environment),
                               .pid = collect->drain.header->pid,
                               .start_seconds =
                                   (int64_t)(collect->drain.header->start_real_ns / NS_PER_SECOND)};
    if (name_expand(collect->options.output, &facts, path, sizeof path) < 0)
        snprintf(path, sizeof path, "%s",
                 collect->options.output); /* open says that it is too long */
    if (output_open(&collect->output, path, &error) < 0)
        tell_failure(collect, &error);
}

/* A ring that is a file goes by the trace's name from now on, so that readers find it. */
static void rename_ring(struct collect *collect)
{
    const char *made_as = collect->options.ring_path;
    char path[PATH_MAX];
    if (!made_as)
        return;
    snprintf(collect->ring_path, sizeof collect->ring_path, "%s", made_as);
    int length = snprintf(path, sizeof path, "%s.ring", collect->output.path);
    if (collect->output.error == 0 && length > 0 && (size_t)length < sizeof path &&
        rename(made_as, path) == 0)
        memcpy(collect->ring_path, path, sizeof path);
}

/* What was asked for and is not done must be said. */
static void tell_unsupported(struct collect *collect)
{
    static const struct vs_error no_bound = {
        "VRAMSCOPE_KEEP is not supported by this version: the whole trace is kept"};
    if (collect->options.keep_wanted && collect->output.error == 0)
        tell_program(collect, &no_bound);
}

static void announce_to_run(struct collect *collect)
{
    collect->report.fd = -1;
    collect->outcome.pid = collect->drain.header->pid;
    collect->outcome.exit_code = collect->outcome.signal = END_NUMBER_UNKNOWN;
    if (collect->options.run_dir && collect->options.run_dir[0] == '/')
        rundir_announce(&collect->report, collect->options.run_dir, collect->outcome.pid);
}

static void write_start(struct collect *collect, const char *const *environment)
{
    output_meta(&collect->output, "process",
                process_start_json(&collect->target, collect->drain.header, environment,
                                   collect->options.hide));
    output_meta(&collect->output, "clock",
                process_clock_start_json(collect->drain.header, collect->options.resolution_ns));
    if (collect->output.error == 0)
        snprintf(collect->outcome.path, sizeof collect->outcome.path, "%s", collect->output.path);
    collect->pending = true;
}

int collect_open(struct collect *collect, const struct options *options,
                 const char *const *environment)
{
    memset(collect, 0, sizeof *collect);
    collect->options = *options;
    int error = map_ring(collect);
    if (error < 0)
        return error;
    announce_to_run(collect);
    target_open(&collect->target, options->pid, options->pidfd, options->ring_fd);
    oom_kills_start(&collect->oom_kills, &collect->target);
    allow_thread_questions(collect);
    open_output(collect, environment);
    rename_ring(collect);
    tell_unsupported(collect);
    collect->symbolizer = symbolizer_new(&collect->output, options->hide);
    collect->records = (struct records){.output = &collect->output,
                                        .symbolizer = collect->symbolizer,
                                        .resolution_ns = options->resolution_ns,
                                        .hide = options->hide,
                                        .device_seen = watch_device,
                                        .device_context = collect};
    collect->nvml = nvml_create(&collect->target);
    collect->idle_sleep_ns = options->flush_ns / 4 * 3;
    collect->last_replaced_check_ns = now_ns();
    write_start(collect, environment);
    flush(collect, now_ns());
    if (collect->output.error == 0)
        atomic_store(&collect->drain.header->collector_state, VS_COLLECTOR_READY);
    /* Only now: the program waits for the state above. */
    populate_ring(collect);
    if (collect->nvml)
        nvml_look(collect->nvml);
    watch_start(&collect->watch, &collect->target, collect->drain.header);
    return 0;
}
