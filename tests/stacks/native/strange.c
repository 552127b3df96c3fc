/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What no table speaks of, and what tables no longer do: code made at run time,
 * assembly without tables, a library in another's place, memory that cannot be
 * read. And that a warm walk makes no system call, and that the comparison of the
 * other tests notices a wrong rule.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "compare.h"

#define NOINLINE __attribute__((noinline))
#define PAGE 4096U
#define REPLACED_TRIES 20
#define QUIET_WALKS 1000

typedef int callback(void *context);
typedef int caller(callback *function, void *context);

struct seen {
    uint64_t words[COMPARE_DEPTH];
    unsigned count;
    enum vs_stack_note note;
};

static NOINLINE int look(void *context)
{
    struct seen *seen = context;
    seen->count = lab_unwind(seen->words, COMPARE_DEPTH, &seen->note);
    return (int)seen->count;
}

static void expect(bool holds, const char *what)
{
    if (!holds) {
        compare_fail(what);
    }
}

static bool holds_address(const struct seen *seen, uint64_t first, uint64_t bytes)
{
    for (unsigned i = 0; i < seen->count; i++) {
        if (vs_frame_address(seen->words[i]) - first < bytes) {
            return true;
        }
    }
    return false;
}

static uint64_t address_of(const void *pointer)
{
    return (uint64_t)(uintptr_t)pointer;
}

/* ---- code made at run time ------------------------------------------------------------ */

/* push rbp; mov rbp, rsp; mov rax, rdi; mov rdi, rsi; call rax; pop rbp; ret */
static const unsigned char with_frame[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf8,
                                           0x48, 0x89, 0xf7, 0xff, 0xd0, 0x5d, 0xc3};
/* The same with rbp = 1, on a frame of its own without a chain. */
static const unsigned char broken_frame[] = {0x55, 0xbd, 0x01, 0x00, 0x00, 0x00, 0x48, 0x89,
                                             0xf8, 0x48, 0x89, 0xf7, 0xff, 0xd0, 0x5d, 0xc3};

static caller *make(const unsigned char *code, size_t bytes)
{
    void *page =
        mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(page, code, bytes);
    caller *function;
    memcpy(&function, &page, sizeof(function));
    return function;
}

struct relay {
    caller *function;
    struct seen *seen;
};

static int relayed(void *context)
{
    struct relay *relay = context;
    return relay->function(look, relay->seen);
}

/* Kept by a frame pointer, whatever it is built with. */
static NOINLINE __attribute__((optimize("no-omit-frame-pointer"))) int
call_made(caller *function, callback *callee, void *context)
{
    int result = function(callee, context);
    __asm__ volatile("" : "+r"(result));
    return result;
}

static void made_code(void)
{
    struct seen seen;
    caller *framed = make(with_frame, sizeof(with_frame));
    caller *second = make(with_frame, sizeof(with_frame));
    caller *broken = make(broken_frame, sizeof(broken_frame));
    struct relay relay = {second, &seen};

    call_made(framed, look, &seen);
    expect(holds_address(&seen, address_of(*(void **)&framed), PAGE) &&
               holds_address(&seen, address_of((void *)call_made), 256) &&
               seen.note == VS_STACK_NOTE_NONE,
           "made code with a frame pointer");
    call_made(framed, relayed, &relay);
    expect(holds_address(&seen, address_of(*(void **)&framed), PAGE) &&
               holds_address(&seen, address_of(*(void **)&second), PAGE) &&
               seen.note == VS_STACK_NOTE_NONE,
           "made code in two places");
    call_made(broken, look, &seen);
    expect(seen.note == VS_STACK_NOTE_NATIVE_STOPPED &&
               seen.words[seen.count - 1] - address_of(*(void **)&broken) < PAGE,
           "made code without a frame pointer");
}

/* ---- assembly ----------------------------------------------------------------------------- */

int no_tables(callback *function, void *context, uint64_t bp);
__asm__(".text\n"
        ".globl no_tables\n"
        ".type no_tables,@function\n"
        "no_tables:\n"
        "pushq %rbp\n"
        "subq $64, %rsp\n"
        "movq %rdx, %rbp\n"
        "movq %rdi, %rax\n"
        "movq %rsi, %rdi\n"
        "callq *%rax\n"
        "addq $64, %rsp\n"
        "popq %rbp\n"
        "ret\n"
        ".size no_tables,.-no_tables\n");

/* Frame pointers into nothing, into a page without access, and to the very end of the stack's. */
static void assembly(void)
{
    struct seen seen;
    char *pages =
        mmap(NULL, 3UL * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pages + PAGE, PAGE, PROT_NONE);
    const uint64_t wrong[] = {0,
                              1,
                              0x123456789000,
                              UINT64_MAX - 7,
                              UINT64_MAX & ~7ULL,
                              1ULL << 63,
                              address_of(pages + PAGE - 8),
                              address_of(pages + PAGE),
                              address_of(&seen) & ~7ULL,
                              0x7ffffffff000 - 8};
    for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        memset(&seen, 0, sizeof(seen));
        no_tables(look, &seen, wrong[i]);
        expect(holds_address(&seen, address_of((void *)no_tables), 64),
               "assembly without tables is not told");
        expect(seen.note == VS_STACK_NOTE_NATIVE_STOPPED &&
                   seen.words[seen.count - 1] - address_of((void *)no_tables) < 64,
               "assembly without tables is left by a wrong frame pointer");
    }
    munmap(pages, 3UL * PAGE);
}

/* ---- one library in another's place --------------------------------------------------------- */

static int compare_callback(void *unused)
{
    (void)unused;
    return (int)compare_here();
}

static void *load(const char *path, caller **function)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
    lab_refresh();
    *(void **)function = dlsym(library, "through");
    return library;
}

static void replaced(const char *const *paths)
{
    int replaced_by_other = 0;
    caller *before = NULL;
    for (int i = 0; i < REPLACED_TRIES; i++) {
        caller *function;
        uint32_t generation = lab_generation();
        void *library = load(paths[i % 2], &function);
        for (int again = 0; again < 3; again++) {
            function(compare_callback, NULL);
        }
        replaced_by_other += function == before;
        before = function;
        dlclose(library);
        lab_refresh();
        expect(lab_generation() != generation, "the module map's generation stands still");
    }
    expect(replaced_by_other > 0, "no library came to lie in another's place");
}

/* ---- no system call ----------------------------------------------------------------------------
 */

static volatile sig_atomic_t calls;

static void on_call(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    calls++;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = -ENOSYS;
}

/* From now on this thread's system calls raise SIGSYS, but those that end it. */
static void forbid_calls(void)
{
    static const unsigned allowed[] = {SYS_rt_sigreturn, SYS_exit,           SYS_madvise,
                                       SYS_munmap,       SYS_rt_sigprocmask, SYS_exit_group};
    struct sock_filter filter[2 * (sizeof(allowed) / sizeof(allowed[0])) + 2] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    unsigned used = 1;
    for (unsigned i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++) {
        filter[used++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], 0, 1);
        filter[used++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    filter[used++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
    struct sock_fprog program = {.len = (unsigned short)used, .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        compare_fail("no system call filter");
    }
}

static NOINLINE int walk_below(int depth, struct seen *seen)
{
    int result = depth == 0 ? look(seen) : walk_below(depth - 1, seen);
    __asm__ volatile("" : "+r"(result));
    return result;
}

/* What the thread found: it cannot even print. */
struct quiet {
    struct seen warm, walked, deep;
    int calls_while_warm, calls_seen, calls_while_deep, error;
};

static void *quiet_thread(void *result)
{
    struct quiet *quiet = result;
    struct seen *seen = &quiet->warm;
    errno = 12345;
    for (volatile int i = 0; i <= QUIET_WALKS; i++) {
        walk_below(40, seen); /* the same call: the same rules */
        if (i == 0) {
            forbid_calls();
            seen = &quiet->walked;
        }
    }
    quiet->error = errno;
    quiet->calls_while_warm = calls;
    (void)syscall(SYS_getppid);
    quiet->calls_seen = calls;
    walk_below(4000, &quiet->deep);
    quiet->calls_while_deep = calls;
    return NULL;
}

static void no_calls(void)
{
    static struct quiet quiet;
    struct sigaction action = {.sa_sigaction = on_call, .sa_flags = SA_SIGINFO};
    pthread_t thread;
    sigaction(SIGSYS, &action, NULL);
    pthread_create(&thread, NULL, quiet_thread, &quiet);
    pthread_join(thread, NULL);
    expect(quiet.calls_while_warm == 0, "a warm walk makes system calls");
    expect(quiet.error == 12345, "a walk touches errno");
    expect(quiet.walked.count == quiet.warm.count && quiet.walked.note == VS_STACK_NOTE_NONE &&
               quiet.walked.count > 40,
           "a walk in a sandbox is another");
    expect(quiet.calls_seen == 1, "the filter does not see system calls");
    /* Pages that cannot be asked about are not read. */
    expect(quiet.calls_while_deep > 1 && quiet.deep.note == VS_STACK_NOTE_NATIVE_STOPPED &&
               quiet.deep.count > 0,
           "a walk that may not ask goes on");
}

/* ---- the comparison itself
 * ------------------------------------------------------------------------ */

static NOINLINE int spoiled_caller(void)
{
    int result = (int)compare_here();
    __asm__ volatile("" : "+r"(result));
    return result;
}

static void notices_a_wrong_rule(void)
{
    struct seen seen;
    spoiled_caller();
    struct compare_totals before = compare_totals;
    look(&seen);
    expect(lab_spoil(seen.words[2], 8), "no rule to spoil");
    printf("expected, because a rule is wrong now:\n");
    spoiled_caller();
    bool noticed = compare_totals.different > before.different;
    compare_totals = before;
    (void)lab_memo_take();
    expect(noticed, "the comparison does not notice a wrong rule");
    lab_spoil(seen.words[2], -8);
    spoiled_caller();
}

int main(int count, char **arguments)
{
    if (count != 3) {
        return 2;
    }
    compare_begin();
    lab_use_tables();
    made_code();
    assembly();
    replaced((const char *const *)arguments + 1);
    no_calls();
    notices_a_wrong_rule();
    return compare_end(arguments[0]);
}
