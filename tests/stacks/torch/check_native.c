/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linked into a copy of the shim in front of its unwinder: what it found is held
 * against the compiler's own (_Unwind_Backtrace), frame by frame, for the first
 * VS_CHECK_STACKS stacks. The figures lie in a file mapped shared, VS_CHECK_FILE
 * with the process's id behind it, so that no end of the process loses them.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <unwind.h>

#include "stacks.h"

#define FRAMES_MAX 1024U

struct figures {
    _Atomic uint64_t wanted, compared, frames, differ, cut, stopped;
    char first_difference[3072];
};

struct trace {
    uint64_t words[FRAMES_MAX];
    unsigned count;
};

extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

static struct figures *figures;
static __thread int checking __attribute__((tls_model("initial-exec")));

unsigned __real_unwind_here(uint64_t *words, unsigned max, enum vs_stack_note *note);
unsigned __wrap_unwind_here(uint64_t *words, unsigned max, enum vs_stack_note *note);

static _Unwind_Reason_Code note_frame(struct _Unwind_Context *context, void *argument)
{
    struct trace *trace = argument;
    int is_exact = 0;
    uint64_t ip = _Unwind_GetIPInfo(context, &is_exact);
    bool is_ours = ip >= (uint64_t)(uintptr_t)__ehdr_start && ip < (uint64_t)(uintptr_t)_end;
    if (ip != 0 && !is_ours && trace->count < FRAMES_MAX) {
        trace->words[trace->count++] = ip | (is_exact ? VS_FRAME_EXACT : 0);
    }
    return _URC_NO_REASON;
}

static void describe(const uint64_t *ours, unsigned count, const struct trace *theirs)
{
    size_t used = 0;
    size_t room = sizeof(figures->first_difference);
    for (unsigned i = 0; i < count || i < theirs->count; i++) {
        int length = snprintf(figures->first_difference + used, room - used, "%u: %lx %lx\n", i,
                              i < count ? (unsigned long)ours[i] : 0,
                              i < theirs->count ? (unsigned long)theirs->words[i] : 0);
        if (length < 0 || (used += (size_t)length) >= room) {
            break;
        }
    }
}

static void compare(const uint64_t *words, unsigned count, enum vs_stack_note note)
{
    struct trace theirs = {.count = 0};
    _Unwind_Backtrace(note_frame, &theirs);
    bool is_part = note != VS_STACK_NOTE_NONE && theirs.count > count;
    bool is_same = (is_part || theirs.count == count) &&
                   memcmp(words, theirs.words, count * sizeof(*words)) == 0;
    figures->frames += count;
    figures->cut += note == VS_STACK_NOTE_NATIVE_CUT;
    figures->stopped += note == VS_STACK_NOTE_NATIVE_STOPPED;
    if (!is_same && figures->differ++ == 0) {
        describe(words, count, &theirs);
    }
    figures->compared++;
}

unsigned __wrap_unwind_here(uint64_t *words, unsigned max, enum vs_stack_note *note)
{
    unsigned count = __real_unwind_here(words, max, note);
    if (figures != NULL && checking == 0 && figures->compared < figures->wanted) {
        checking = 1;
        compare(words, count, *note);
        checking = 0;
    }
    return count;
}

__attribute__((constructor)) static void on_load(void)
{
    char path[4096];
    const char *file = getenv("VS_CHECK_FILE");
    const char *wanted = getenv("VS_CHECK_STACKS");
    if (file == NULL || wanted == NULL) {
        return;
    }
    snprintf(path, sizeof(path), "%s.%d", file, (int)getpid());
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void *mapped =
        fd >= 0 && ftruncate(fd, sizeof(struct figures)) == 0
            ? mmap(NULL, sizeof(struct figures), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
            : MAP_FAILED;
    if (fd >= 0) {
        close(fd);
    }
    if (mapped != MAP_FAILED) {
        figures = mapped;
        figures->wanted = strtoull(wanted, NULL, 10);
    }
}
