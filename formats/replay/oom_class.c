/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What kind of failure an out of memory is, and the sentence that says why with
 * the numbers that decided. A class is given only where the trace shows it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "analysis.h"
#include "format_size.h"
#include "layers.h"
#include "oom_pools.h"
#include "segments.h"

/* Walking the live blocks for every failure of a long run must stay affordable. */
#define WALK_LIMIT 20000000ULL
/* A segment is pinned when its live blocks are at most this part of it. */
#define PINNED_BY_AT_MOST 8
/* Of a device that is a process's own but for this part, others are not the reason. */
#define MOSTLY_OWN 8
/* The device gives memory in pages of so much, for page tables too. */
#define PAGE_TABLE (2ULL << 20)

const char *vs_oom_class_name(enum vs_oom_class class)
{
    static const char *const names[] = {
        [VS_OOM_UNKNOWN] = "unknown",
        [VS_OOM_FULL] = "full",
        [VS_OOM_FRAGMENTED] = "fragmented",
        [VS_OOM_HELD_BY_CACHE] = "held_by_cache",
        [VS_OOM_OUTSIDE] = "outside",
        [VS_OOM_OTHER_PROCESS] = "other_process",
        [VS_OOM_REQUEST_EXCEEDS_DEVICE] = "request_exceeds_device",
        [VS_OOM_ADDRESS_SPACE] = "address_space",
        [VS_OOM_HOST_MEMORY] = "host_memory",
        [VS_OOM_MULTICAST] = "multicast",
        [VS_OOM_OTHER_STREAM] = "other_stream",
        [VS_OOM_PINNED_SEGMENT] = "pinned_segment",
        [VS_OOM_LIMIT] = "limit",
        [VS_OOM_WAITING_STREAMS] = "waiting_streams",
        [VS_OOM_FOLLOW_UP] = "follow_up",
    };
    return names[class];
}

void vs_oom_decide(struct vs_oom *oom, enum vs_oom_class class, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(oom->why, sizeof(oom->why), format, arguments);
    va_end(arguments);
    oom->class = class;
}

static struct vs_size_text size(int64_t bytes)
{
    return vs_format_size(bytes);
}

/* The holes at the failure; `layout` is released by the caller. False: they are not known. */
static bool look_at_holes(struct vs_ooms *ooms, const struct vs_device_state *device,
                          struct vs_oom *oom, struct vs_layout *layout)
{
    if (!device->framework_seen)
        return false;
    oom->cached_known = true;
    oom->cached = vs_device_reserved(device) - device->layers[VS_LAYER_FRAMEWORK].live_bytes;
    ooms->walked_blocks += ooms->state->blocks.count;
    if (ooms->walked_blocks > WALK_LIMIT || vs_layout_take(ooms->state, device, layout) != 0 ||
        !layout->known)
        return false;
    oom->largest_known = true;
    oom->largest_free = layout->largest_free_bytes;
    oom->waiting = layout->waiting_bytes;
    if (oom->waiting != 0 &&
        vs_state_waited_stream(ooms->state, device, &oom->waited_stream, &oom->waited_bytes) != 0)
        ooms->error = -ENOMEM;
    return true;
}

/* Without a device's state: by the kind of call alone. */
static bool decided_by_call(struct vs_oom *oom, uint8_t kind)
{
    if (kind == VS_KIND_RESERVE)
        vs_oom_decide(oom, VS_OOM_ADDRESS_SPACE,
                      "a reservation of %s of addresses failed; it needs no memory",
                      size((int64_t)oom->requested).text);
    else if (kind == VS_KIND_MULTICAST_BIND || kind == VS_KIND_MULTICAST_CREATE)
        vs_oom_decide(oom, VS_OOM_MULTICAST,
                      "a multicast call for %s failed; multicast owns no device memory",
                      size((int64_t)oom->requested).text);
    else if (oom->layer == VS_LAYER_HOST)
        vs_oom_decide(oom, VS_OOM_HOST_MEMORY,
                      "%s of pinned host memory were asked for and not given",
                      size((int64_t)oom->requested).text);
    else
        return false;
    return true;
}

/* Every hole that the request fits into belongs to another stream than the one that asked. */
static bool decided_by_stream(struct vs_oom *oom, const struct vs_layout *layout)
{
    uint64_t largest = 0, of_largest = 0;
    if (!oom->stream_known)
        return false;
    for (size_t i = 0; i < layout->count; i++) {
        const struct vs_segment *segment = &layout->segments[i];
        if (segment->largest_free_bytes < oom->requested || !vs_oom_may_use(oom, segment))
            continue;
        if (!segment->stream_known || segment->stream == oom->stream)
            return false;
        if (segment->largest_free_bytes > largest) {
            largest = segment->largest_free_bytes;
            of_largest = segment->stream;
        }
    }
    if (largest == 0)
        return false;
    vs_oom_decide(
        oom, VS_OOM_OTHER_STREAM,
        "%s were asked for on stream 0x%" PRIx64 "; a free block of %s was cached, but for "
        "stream 0x%" PRIx64,
        size((int64_t)oom->requested).text, oom->stream, size((int64_t)largest).text, of_largest);
    return true;
}

/* What the device and the cache could give, with so much of the cache releasable. */
static bool room_for(const struct vs_oom *oom, uint64_t releasable)
{
    bool free_known = oom->free_bytes != VS_FREE_UNKNOWN && oom->free_bytes <= INT64_MAX;
    return free_known && oom->free_bytes + releasable >= oom->requested;
}

static bool is_capturing(const struct vs_oom *oom)
{
    return vs_pool_is_graphs(oom->pool);
}

/* What the cache gives back for the request, once nothing waits. */
static uint64_t releasable_for(const struct vs_state *state, const struct vs_oom *oom,
                               const struct vs_layout *layout)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < layout->count && !is_capturing(oom); i++)
        if (vs_oom_pool_gives_back(state, &layout->segments[i]))
            bytes += layout->segments[i].releasable_bytes;
    return bytes;
}

/* A free block of the request's own stream and pool that is large enough. */
static bool has_block(const struct vs_oom *oom, const struct vs_layout *layout)
{
    for (size_t i = 0; i < layout->count; i++) {
        const struct vs_segment *segment = &layout->segments[i];
        bool other = oom->stream_known && segment->stream_known && segment->stream != oom->stream;
        if (!other && segment->largest_free_bytes >= oom->requested && vs_oom_may_use(oom, segment))
            return true;
    }
    return false;
}

static bool fits(const struct vs_state *state, const struct vs_oom *oom,
                 const struct vs_layout *layout)
{
    return has_block(oom, layout) || room_for(oom, releasable_for(state, oom, layout));
}

/*
 * Inside a capture the cache puts off the events of blocks that other streams used. Such blocks
 * look free here, and are what the cache did not take.
 */
static bool decided_by_deferral(struct vs_oom *oom, const struct vs_device_state *device,
                                const struct vs_layout *layout)
{
    if (oom->layer != VS_LAYER_FRAMEWORK || !is_capturing(oom) || !device->freed_in_capture ||
        !oom->stream_known || !has_block(oom, layout))
        return false;
    vs_oom_decide(oom, VS_OOM_WAITING_STREAMS,
                  "%s were asked for inside a capture, whose pool held %s that were freed in it, "
                  "the largest block %s; blocks that another stream used (record_stream) are not "
                  "given out again before the capture is over",
                  size((int64_t)oom->requested).text,
                  size((int64_t)vs_oom_usable(oom, layout).bytes).text,
                  size((int64_t)vs_oom_usable(oom, layout).largest).text);
    return true;
}

/* "stream 0x5…", as far as it is known which one the freed blocks wait for. */
static void name_waited(const struct vs_oom *oom, char *out, size_t room)
{
    if (oom->waited_bytes == 0)
        snprintf(out, room, "other streams");
    else if (oom->waited_bytes >= oom->waiting)
        snprintf(out, room, "stream 0x%" PRIx64, oom->waited_stream);
    else
        snprintf(out, room, "other streams, %s of it for stream 0x%" PRIx64,
                 size((int64_t)oom->waited_bytes).text, oom->waited_stream);
}

/* Blocks that were freed and wait for streams are what was missing. */
static bool decided_by_waits(struct vs_ooms *ooms, struct vs_oom *oom,
                             const struct vs_device_state *device, const struct vs_layout *layout)
{
    struct vs_layout idle;
    char waited[80];
    if (oom->layer != VS_LAYER_FRAMEWORK || layout->waiting_bytes == 0 ||
        fits(ooms->state, oom, layout))
        return false;
    bool decided =
        vs_layout_take_idle(ooms->state, device, &idle) == 0 && fits(ooms->state, oom, &idle);
    vs_layout_release(&idle);
    name_waited(oom, waited, sizeof(waited));
    if (decided)
        vs_oom_decide(
            oom, VS_OOM_WAITING_STREAMS,
            "%s were asked for and would have fitted without the %s of freed blocks that waited "
            "for %s%s; the largest free block was %s",
            size((int64_t)oom->requested).text, size((int64_t)layout->waiting_bytes).text, waited,
            ooms->state->capture_count != 0 ? ", as they do until the capture is over" : "",
            size((int64_t)layout->largest_free_bytes).text);
    return decided;
}

/* The segment that would have made room with the fewest live bytes gone, among those that hold
   little; NULL: none. */
static const struct vs_segment *pinned_segment(const struct vs_state *state,
                                               const struct vs_oom *oom,
                                               const struct vs_layout *layout)
{
    const struct vs_segment *best = NULL;
    uint64_t room = releasable_for(state, oom, layout);
    if (oom->free_bytes != VS_FREE_UNKNOWN && oom->free_bytes <= INT64_MAX)
        room += oom->free_bytes;
    for (size_t i = 0; i < layout->count; i++) {
        const struct vs_segment *segment = &layout->segments[i];
        uint64_t given_back = room + segment->reserved_bytes - segment->releasable_bytes;
        if (segment->live_count == 0 || segment->waiting_bytes != 0 ||
            (!vs_oom_may_use(oom, segment) && !vs_oom_pool_gives_back(state, segment)) ||
            segment->live_bytes > segment->reserved_bytes / PINNED_BY_AT_MOST ||
            (segment->reserved_bytes < oom->requested && given_back < oom->requested))
            continue;
        if (best == NULL || segment->live_bytes < best->live_bytes)
            best = segment;
    }
    return best;
}

static bool decided_by_pinned(const struct vs_state *state, struct vs_oom *oom,
                              const struct vs_layout *layout)
{
    uint64_t largest = vs_oom_usable(oom, layout).largest;
    if (oom->layer != VS_LAYER_FRAMEWORK || largest >= oom->requested)
        return false;
    const struct vs_segment *pinned = pinned_segment(state, oom, layout);
    if (pinned == NULL)
        return false;
    vs_oom_decide(
        oom, VS_OOM_PINNED_SEGMENT,
        "%s were asked for and would have fitted without the %s in %zu live block%s of a segment "
        "of %s%s; the largest free block %s%s",
        size((int64_t)oom->requested).text, size((int64_t)pinned->live_bytes).text,
        pinned->live_count, pinned->live_count == 1 ? "" : "s",
        size((int64_t)pinned->reserved_bytes).text,
        vs_oom_may_use(oom, pinned)             ? ""
        : pinned->pool >= VS_CACHE_POOL_USER    ? " in a MemPool that is gone"
        : pinned->pool >= VS_CACHE_POOL_PRIVATE ? " in the pool of a graph that is gone"
                                                : " in the default pool, outside of the capture",
        vs_oom_may_use(oom, pinned) ? "was " : "that it could use was ",
        size((int64_t)largest).text);
    return true;
}

/* Refused by the framework with room on the device and no driver call that failed. */
static bool refused_by_limit(const struct vs_ooms *ooms, const struct vs_oom *oom)
{
    return oom->layer == VS_LAYER_FRAMEWORK && oom->attempt_count == 0 &&
           oom->free_bytes <= INT64_MAX && oom->free_bytes >= oom->requested &&
           !vs_state_lossy(ooms->state);
}

static bool decided_by_limit(const struct vs_ooms *ooms, struct vs_oom *oom,
                             const struct vs_device_state *device, const struct vs_layout *layout)
{
    /* With enough of it free, it is the pieces that the limit keeps from being replaced. */
    if (vs_oom_usable(oom, layout).bytes >= oom->requested)
        return false;
    if (!refused_by_limit(ooms, oom))
        return false;
    vs_oom_decide(
        oom, VS_OOM_LIMIT,
        "the framework refused %s by a limit of its own: no driver call failed and %s were free "
        "on the device; it had reserved %s",
        size((int64_t)oom->requested).text, size((int64_t)oom->free_bytes).text,
        size(vs_device_reserved(device)).text);
    return true;
}

/* The framework has room for the request but gave up. */
static bool decided_by_cache(const struct vs_ooms *ooms, struct vs_oom *oom,
                             const struct vs_layout *layout)
{
    int64_t requested = (int64_t)oom->requested;
    struct vs_oom_free usable = vs_oom_usable(oom, layout);
    if (oom->layer != VS_LAYER_FRAMEWORK || !oom->cached_known || oom->cached < requested ||
        requested == 0)
        return false;
    if (oom->largest_known && oom->pool >= VS_CACHE_POOL_DEFAULT &&
        usable.bytes + oom->waiting < oom->requested)
        return false; /* what is cached is other pools' */
    if (oom->largest_known && usable.largest < oom->requested)
        vs_oom_decide(
            oom, VS_OOM_FRAGMENTED,
            "%s were cached and free, but the largest free block was %s, less than the %s asked "
            "for%s",
            size((int64_t)(usable.bytes + oom->waiting)).text, size((int64_t)usable.largest).text,
            size(requested).text,
            refused_by_limit(ooms, oom) ? "; a limit of its own kept the framework from taking more"
                                        : "");
    else
        vs_oom_decide(
            oom, VS_OOM_UNKNOWN,
            "%s were cached and free%s; a block may belong to another stream or pool or wait "
            "for one",
            size(oom->cached).text,
            oom->largest_known ? ", the largest block would have held the request" : "");
    return true;
}

/* What was missing lay freed in pools of the driver, which keep it until they are told to trim. */
static bool decided_by_driver_pools(const struct vs_ooms *ooms, struct vs_oom *oom)
{
    struct vs_pools_kept kept = vs_state_pools_kept(ooms->state, oom->device);
    if (oom->free_bytes > INT64_MAX || oom->free_bytes >= oom->requested ||
        (uint64_t)(kept.trimmable + kept.stuck) < oom->requested - oom->free_bytes)
        return false;
    bool trimming_helps = (uint64_t)kept.trimmable >= oom->requested - oom->free_bytes;
    if (trimming_helps)
        vs_oom_decide(oom, VS_OOM_HELD_BY_CACHE,
                      "%s were asked for and %s were free, while the driver's memory pool kept %s "
                      "that had been freed; %s gives back the pages of it that no live block is in",
                      size((int64_t)oom->requested).text, size((int64_t)oom->free_bytes).text,
                      size(kept.trimmable).text,
                      kept.framework ? "torch.cuda.empty_cache()" : "cudaMemPoolTrimTo");
    else
        vs_oom_decide(oom, VS_OOM_FRAGMENTED,
                      "%s were asked for and %s were free; the driver's memory pool kept %s that "
                      "had been freed: in pages with live blocks, for the pool had just been "
                      "trimmed, or of streams that were not done",
                      size((int64_t)oom->requested).text, size((int64_t)oom->free_bytes).text,
                      size(kept.trimmable + kept.stuck).text);
    return true;
}

/* The process outside that holds most. */
static uint64_t largest_other(const struct vs_device_state *device)
{
    size_t index = 0;
    uint64_t key, pid = 0, most = 0;
    const uint64_t *bytes;
    while ((bytes = vs_sizes_next(&device->others, &index, &key)) != NULL)
        if (*bytes > most || (*bytes == most && key < pid)) {
            most = *bytes;
            pid = key;
        }
    return pid;
}

/*
 * A request beside the framework, whose cache has what is missing: free to be given back, or kept
 * from it by live blocks.
 */
static bool decided_by_cache_beside(const struct vs_ooms *ooms, struct vs_oom *oom,
                                    const struct vs_device_state *device,
                                    const struct vs_layout *layout)
{
    if (oom->layer != VS_LAYER_DRIVER || !oom->cached_known || oom->requested == 0 ||
        room_for(oom, 0))
        return false;
    int64_t requested = (int64_t)oom->requested;
    int64_t held = oom->cached < device->segment_backed + device->pool_reserved
                       ? oom->cached
                       : device->segment_backed + device->pool_reserved;
    uint64_t releasable = oom->largest_known ? releasable_for(ooms->state, oom, layout) : 0;
    const char *call = device->caching_layer != NULL ? device->caching_layer->give_back : NULL;
    if (releasable != 0 && room_for(oom, releasable))
        vs_oom_decide(oom, VS_OOM_HELD_BY_CACHE,
                      "%s were asked for outside of the framework and %s were free, while its "
                      "cache held %s unused; %s would have given back %s",
                      size(requested).text, size((int64_t)oom->free_bytes).text,
                      size(oom->cached).text, call != NULL ? call : "emptying it",
                      size((int64_t)releasable).text);
    else if (held >= requested)
        vs_oom_decide(oom, VS_OOM_HELD_BY_CACHE,
                      "%s were asked for outside of the framework, whose cache held %s unused%s",
                      size(requested).text, size(held).text,
                      oom->largest_known ? ", which live blocks and private pools kept from being "
                                           "given back"
                                         : "");
    else
        return false;
    return true;
}

static void decide_full(struct vs_oom *oom, int64_t own, int64_t total, int64_t unbacked)
{
    char asleep[96] = "";
    if (unbacked > 0)
        snprintf(asleep, sizeof(asleep),
                 "; %s that the framework counts had no memory behind it (asleep)",
                 size(unbacked).text);
    vs_oom_decide(oom, VS_OOM_FULL,
                  "%s were asked for, %s of %s were in use by %s and %s were free%s",
                  size((int64_t)oom->requested).text, size(own).text, size(total).text,
                  oom->layer == VS_LAYER_FRAMEWORK ? "the framework's blocks" : "this process",
                  size((int64_t)oom->free_bytes).text, asleep);
}

/* Which band left no room: the largest one without which the request would have fitted. */
static void decide_by_bands(struct vs_oom *oom, const struct vs_device_state *device,
                            const struct vs_bands *bands, int64_t free_bytes)
{
    int64_t total = (int64_t)device->total_bytes;
    int64_t requested = (int64_t)oom->requested, implicit = 0;
    for (int i = 0; i < VS_IMPLICITS; i++)
        implicit += bands->implicit[i];
    /* Of what is by difference, a part may be other processes'. */
    int64_t certain =
        implicit > bands->implicit_uncertainty ? implicit - bands->implicit_uncertainty : 0;
    int64_t own = oom->layer != VS_LAYER_FRAMEWORK ? bands->direct + bands->backed
                  : bands->allocated < bands->backed
                      ? bands->allocated
                      : bands->backed; /* of sleeping blocks only addresses */
    int64_t outside = oom->layer == VS_LAYER_FRAMEWORK ? bands->direct + bands->unexplained : 0;
    int64_t need = requested - free_bytes;
    if (own + certain + requested > total)
        decide_full(oom, own, total, bands->unbacked);
    else if (bands->other_process >= need && bands->other_process >= outside)
        vs_oom_decide(oom, VS_OOM_OTHER_PROCESS,
                      "other processes held %s, the largest is pid %" PRIu64
                      "; %s were asked for and %s free",
                      size(bands->other_process).text, largest_other(device), size(requested).text,
                      size(free_bytes).text);
    else if (outside >= need && outside > 0)
        vs_oom_decide(oom, VS_OOM_OUTSIDE,
                      "%s were held outside of the framework; %s were asked for and %s free",
                      size(outside).text, size(requested).text, size(free_bytes).text);
    else if (oom->layer == VS_LAYER_FRAMEWORK && own + implicit + requested <= total &&
             bands->cached > 0 && free_bytes + bands->cached >= requested)
        vs_oom_decide(oom, VS_OOM_FRAGMENTED,
                      "%s were asked for; %s free on the device and %s cached, which live blocks "
                      "keep from being given back, would do together but lie apart",
                      size(requested).text, size(free_bytes).text, size(bands->cached).text);
    else if (own + implicit + requested > total && own >= total - total / MOSTLY_OWN)
        vs_oom_decide(
            oom, VS_OOM_FULL,
            "%s were asked for, %s of %s were in use by %s, %s by difference (its context "
            "and modules, or others') and %s were free",
            size(requested).text, size(own).text, size(total).text,
            oom->layer == VS_LAYER_FRAMEWORK ? "the framework's blocks" : "this process",
            size(implicit).text, size(free_bytes).text);
    else if (own + implicit + requested > total) {
        oom->own_if_alone = own;
        vs_oom_decide(
            oom, VS_OOM_UNKNOWN,
            "%s were asked for and %s free; %s by difference are this process's context and "
            "modules, or other processes', who were not known yet",
            size(requested).text, size(free_bytes).text, size(implicit).text);
    } else
        vs_oom_decide(oom, VS_OOM_UNKNOWN,
                      "%s were asked for and %s free; no single band explains it",
                      size(requested).text, size(free_bytes).text);
}

static void decide_by_device(struct vs_ooms *ooms, struct vs_oom *oom,
                             const struct vs_device_state *device)
{
    struct vs_bands bands;
    vs_state_bands(ooms->state, device, &bands);
    bool free_known = oom->free_bytes != VS_FREE_UNKNOWN && oom->free_bytes <= INT64_MAX;
    if (device->total_bytes == 0 || !free_known || !bands.device_known)
        vs_oom_decide(oom, VS_OOM_UNKNOWN, "the device's free memory was not measured");
    else if (oom->free_bytes >= oom->requested)
        vs_oom_decide(
            oom, VS_OOM_UNKNOWN,
            "%s were asked for though %s were free on the device: refused by a limit that "
            "the device does not show (MPS, vGPU, a container's hook), or freed by others "
            "only then",
            size((int64_t)oom->requested).text, size((int64_t)oom->free_bytes).text);
    else
        decide_by_bands(oom, device, &bands, (int64_t)oom->free_bytes);
}

/*
 * Whether the same request would have been met right after: by a free block of its own stream, or
 * by what was free on the device. What a framework could still have given back is not counted: it
 * had tried that.
 */
static void decide_retry(const struct vs_ooms *ooms, struct vs_oom *oom,
                         const struct vs_layout *layout)
{
    bool framework = oom->layer == VS_LAYER_FRAMEWORK;
    if (oom->class == VS_OOM_REQUEST_EXCEEDS_DEVICE || refused_by_limit(ooms, oom)) {
        oom->retry_known = true;
        return;
    }
    if (oom->requested == 0 || oom->free_bytes == VS_FREE_UNKNOWN || (framework && layout == NULL))
        return;
    oom->retry_known = true;
    oom->retry_fits =
        (framework && oom->class != VS_OOM_WAITING_STREAMS && has_block(oom, layout)) ||
        room_for(oom, 0);
}

static void decide_on_device(struct vs_ooms *ooms, struct vs_oom *oom,
                             const struct vs_device_state *device)
{
    struct vs_layout layout = {0};
    bool known = look_at_holes(ooms, device, oom, &layout);
    if (device->total_bytes > 0 && oom->requested > device->total_bytes)
        vs_oom_decide(oom, VS_OOM_REQUEST_EXCEEDS_DEVICE, "%s were asked for on a device of %s",
                      size((int64_t)oom->requested).text, size((int64_t)device->total_bytes).text);
    else if (!decided_by_limit(ooms, oom, device, &layout) &&
             !(known && decided_by_stream(oom, &layout)) &&
             !(known && decided_by_deferral(oom, device, &layout)) &&
             !(known && decided_by_waits(ooms, oom, device, &layout)) &&
             !(known && decided_by_pinned(ooms->state, oom, &layout)) &&
             !(known && vs_oom_decided_by_pools(ooms->state, oom, &layout)) &&
             !decided_by_driver_pools(ooms, oom) &&
             !decided_by_cache_beside(ooms, oom, device, &layout) &&
             !decided_by_cache(ooms, oom, &layout))
        decide_by_device(ooms, oom, device);
    decide_retry(ooms, oom, known ? &layout : NULL);
    vs_layout_release(&layout);
}

/* Mapping memory that is there already takes no more than page tables. */
static bool decided_by_mapping(struct vs_oom *oom, uint8_t kind)
{
    if (kind != VS_KIND_MAP && kind != VS_KIND_SET_ACCESS)
        return false;
    bool known = oom->free_bytes <= INT64_MAX;
    vs_oom_decide(oom, known && oom->free_bytes < PAGE_TABLE ? VS_OOM_FULL : VS_OOM_UNKNOWN,
                  "mapping %s that were created before takes no memory but page tables; free on "
                  "the device: %s",
                  size((int64_t)oom->requested).text,
                  known ? size((int64_t)oom->free_bytes).text : "not known");
    return true;
}

/* The thread's last request that failed; NULL: none. */
static const struct vs_oom *earlier_request(const struct vs_ooms *ooms, uint32_t thread)
{
    for (size_t i = ooms->count; i-- > 0;)
        if (ooms->items[i].thread == thread && ooms->items[i].requested != 0)
            return &ooms->items[i];
    return NULL;
}

static bool asks_for_nothing(uint8_t kind)
{
    return kind == VS_KIND_EVENT_RECORD || kind == VS_KIND_EVENT_QUERY ||
           kind == VS_KIND_EVENT_DESTROY || kind == VS_KIND_STREAM_DESTROY ||
           kind == VS_KIND_DEVICE_SET || kind == VS_KIND_CAPTURE_BEGIN;
}

/* A call that asks for no memory hands on the error that an earlier one left. */
static bool decided_by_earlier(const struct vs_ooms *ooms, struct vs_oom *oom, uint8_t kind)
{
    const struct vs_oom *earlier =
        asks_for_nothing(kind) ? earlier_request(ooms, oom->thread) : NULL;
    if (earlier == NULL)
        return false;
    uint64_t since_ns = oom->time_ns - earlier->time_ns;
    vs_oom_decide(
        oom, VS_OOM_FOLLOW_UP,
        "%s asks for no memory: it handed on the error of a call before it; %s earlier a request "
        "for %s by %s had failed",
        vs_state_string(ooms->state, oom->label), vs_format_time(since_ns).text,
        size((int64_t)earlier->requested).text, vs_state_string(ooms->state, earlier->label));
    return true;
}

void vs_oom_classify(struct vs_ooms *ooms, struct vs_oom *oom, uint8_t kind)
{
    if (oom->requested > INT64_MAX)
        oom->requested = INT64_MAX; /* absurd, and larger than any device all the same */
    const struct vs_device_state *device = vs_state_device(ooms->state, oom->device);
    if (decided_by_call(oom, kind) || decided_by_earlier(ooms, oom, kind))
        return;
    if (device == NULL) {
        vs_oom_decide(oom, VS_OOM_UNKNOWN, "the device of the call is not known");
        return;
    }
    if (!decided_by_mapping(oom, kind))
        decide_on_device(ooms, oom, device);
}

void vs_oom_clear_others(struct vs_oom *oom, const struct vs_device_state *device)
{
    if (oom->class == VS_OOM_UNKNOWN && oom->own_if_alone > 0 &&
        device->implicit_uncertainty == 0 && device->context_of_others == 0 &&
        device->other_bytes == 0)
        decide_full(oom, oom->own_if_alone, (int64_t)device->total_bytes, 0);
}

void vs_oom_blame_others(struct vs_oom *oom, int64_t other_bytes)
{
    bool open = oom->class == VS_OOM_FULL || oom->class == VS_OOM_UNKNOWN;
    if (!open || oom->layer == VS_LAYER_HOST || oom->free_bytes == VS_FREE_UNKNOWN ||
        oom->free_bytes >= oom->requested || other_bytes <= 0 ||
        (uint64_t)other_bytes < oom->requested - oom->free_bytes)
        return;
    vs_oom_decide(oom, VS_OOM_OTHER_PROCESS,
                  "other processes held %s right after it, the largest is pid %" PRIu64
                  "; %s were asked for and %s free",
                  size(other_bytes).text, oom->others[0].pid, size((int64_t)oom->requested).text,
                  size((int64_t)oom->free_bytes).text);
}
