/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks of every shape that C gives them. Built with and without optimization
 * and frame pointers; the same scenes run by unwind tables and, whether that suits
 * the program or not, by frame pointers with the proof that new stacks need.
 */
#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "compare.h"

#define NOINLINE __attribute__((noinline))
#define NO_TAIL_CALL() __asm__ volatile("")
#define RECURSION 10000
#define RECALLED_MIN 100U
#define SIDE_STACK_BYTES 65536U
#define TINY_THREADS 32

void cxx_scenes(void); /* cxx.cc */

static volatile int sink;

/* ---- calls --------------------------------------------------------------------------- */

static NOINLINE int recurse(int depth)
{
    int result = depth == 0 ? (int)compare_here() : recurse(depth - 1);
    NO_TAIL_CALL();
    return result + sink;
}

static inline __attribute__((always_inline)) int inlined(int depth)
{
    char local[16];
    memset(local, depth, sizeof(local));
    int result = recurse(depth) + local[sink & 15];
    return result;
}

static NOINLINE int tail_callee(int a)
{
    int result = inlined(a) + a;
    NO_TAIL_CALL();
    return result;
}

static NOINLINE int tail_caller(int a)
{
    return tail_callee(a + 1);
}

static NOINLINE int many_arguments(long a, long b, long c, long d, long e, long f, long g, long h,
                                   long i)
{
    int result = recurse((int)((a + b + c + d + e + f + g + h + i) & 3));
    NO_TAIL_CALL();
    return result + (int)i;
}

/* Calls in its rarely taken part, which the compiler moves away. */
static NOINLINE int cold_path(int rarely)
{
    if (__builtin_expect(rarely, 0)) {
        sink += recurse(2);
        sink = 0;
    }
    return sink;
}

/* ---- frames ---------------------------------------------------------------------------- */

static NOINLINE int with_alloca(size_t bytes)
{
    char *buffer = alloca(bytes);
    memset(buffer, 1, bytes);
    int result = recurse(1) + buffer[bytes - 1];
    NO_TAIL_CALL();
    return result;
}

static NOINLINE int with_vla(int n)
{
    int values[n];
    for (int i = 0; i < n; i++) {
        values[i] = i;
    }
    int result = with_alloca((size_t)n * 8) + values[n / 2];
    NO_TAIL_CALL();
    return result;
}

static NOINLINE int large_frame(void)
{
    volatile char buffer[200000];
    buffer[0] = 1;
    buffer[sizeof(buffer) - 1] = 1;
    int result = recurse(1) + buffer[0];
    NO_TAIL_CALL();
    return result;
}

typedef double wide __attribute__((vector_size(32)));

/* Its frame is realigned; with a variable array, by a register of its own. */
static NOINLINE __attribute__((target("avx"))) int aligned_frame(int n)
{
    volatile wide local[2];
    local[0] = (wide){1, 2, 3, 4};
    local[1] = local[0];
    char more[n + 1];
    memset(more, 1, (size_t)n + 1);
    int result = with_vla(n) + (int)local[1][0] + more[n];
    NO_TAIL_CALL();
    return result;
}

static NOINLINE __attribute__((target("avx"))) int aligned_plain(int n, long a, long b, long c,
                                                                 long d, long e, long f, long g)
{
    volatile wide local[2];
    local[1] = (wide){(double)a, (double)b, (double)(c + d), (double)(e + f + g)};
    int result = aligned_frame(n) + (int)local[1][0];
    NO_TAIL_CALL();
    return result;
}

/* ---- through the C library ---------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    int x = *(const int *)a;
    int y = *(const int *)b;
    if (x == 3 || y == 3) {
        sink += recurse(1);
        sink = 0;
    }
    return (x > y) - (x < y);
}

static NOINLINE void through_qsort(void)
{
    int values[] = {5, 3, 9, 1, 7, 2};
    qsort(values, 6, sizeof(values[0]), by_value);
    int key = 3;
    (void)bsearch(&key, values, 6, sizeof(values[0]), by_value);
}

static int call_back(void *depth)
{
    return recurse(*(int *)depth);
}

/* A frame of the library itself in the middle: it does not show. */
static NOINLINE void through_the_library(void)
{
    uint64_t words[COMPARE_DEPTH];
    enum vs_stack_note note;
    int depth = 2;
    sink += lab_call(call_back, &depth);
    sink = 0;
    unsigned count = lab_unwind(words, COMPARE_DEPTH, &note);
    if (count < 3 || note != VS_STACK_NOTE_NONE) {
        compare_fail("a stack beneath main does not end as it should");
    }
}

/* ---- signals ------------------------------------------------------------------------------- */

static void on_signal(int number)
{
    (void)number;
    sink += recurse(2);
    sink = 0;
}

static NOINLINE void with_signals(void)
{
    static char stack[SIDE_STACK_BYTES];
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof(stack)};
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    kill(getpid(), SIGUSR1);
    sigaltstack(&alternate, NULL);
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR2, &action, NULL);
    raise(SIGUSR2);
    kill(getpid(), SIGUSR2);
}

static void on_nested(int number)
{
    (void)number;
    raise(SIGUSR1);
    NO_TAIL_CALL();
}

/* A fault in the middle of a function, at its very first instruction too. */
static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    sink += recurse(1);
    sink = 0;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2; /* ud2 */
}

void fault_at_once(void);
__asm__(".text\n"
        ".globl fault_at_once\n"
        ".type fault_at_once,@function\n"
        "fault_at_once:\n"
        ".cfi_startproc\n"
        "ud2\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size fault_at_once,.-fault_at_once\n");

static NOINLINE void with_faults(void)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    struct sigaction nested = {.sa_handler = on_nested};
    sigaction(SIGILL, &action, NULL);
    fault_at_once();
    sigaction(SIGUSR2, &nested, NULL);
    raise(SIGUSR2);
}

/* ---- jumps ------------------------------------------------------------------------------ */

static sigjmp_buf landing;

static NOINLINE int jump_away(int depth)
{
    if (depth == 0) {
        sink += (int)compare_here();
        siglongjmp(landing, 1);
    }
    int result = jump_away(depth - 1);
    NO_TAIL_CALL();
    return result + sink;
}

static void jump_out_of_handler(int number)
{
    (void)number;
    jump_away(1);
}

/* Out of functions and of a handler; then others at the same place. */
static NOINLINE void with_jumps(void)
{
    struct sigaction action = {.sa_handler = jump_out_of_handler};
    sigaction(SIGUSR1, &action, NULL);
    for (volatile int i = 0; i < 6; i++) {
        if (sigsetjmp(landing, 1) == 0) {
            if (i % 3 == 2) {
                raise(SIGUSR1);
            }
            jump_away(i);
        }
        sink += recurse(i / 2);
        sink = 0;
    }
}

/* ---- side stacks ----------------------------------------------------------------------------- */

static ucontext_t main_context, side_context;

static void on_side_stack(void)
{
    sink += recurse(3);
    sink = 0;
    swapcontext(&side_context, &main_context);
    sink += tail_caller(1);
    sink = 0;
}

static NOINLINE void with_contexts(void)
{
    for (int round = 0; round < 3; round++) {
        char *stack = mmap(NULL, SIDE_STACK_BYTES, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        getcontext(&side_context);
        side_context.uc_stack.ss_sp = stack;
        side_context.uc_stack.ss_size = SIDE_STACK_BYTES;
        side_context.uc_link = &main_context;
        makecontext(&side_context, on_side_stack, 0);
        swapcontext(&main_context, &side_context);
        sink += recurse(1);
        sink = 0;
        swapcontext(&main_context, &side_context);
        munmap(stack, SIDE_STACK_BYTES);
    }
}

/* ---- threads
 * ------------------------------------------------------------------------------------- */

/* No room for the others: only ours, which has to reach the thread's start. */
static void *in_tiny_thread(void *expected)
{
    uint64_t words[16];
    enum vs_stack_note note;
    unsigned *count = expected;
    *count = lab_unwind(words, 16, &note);
    if (note != VS_STACK_NOTE_NONE) {
        *count = 0;
    }
    return NULL;
}

static void *in_thread(void *unused)
{
    (void)unused;
    sink += recurse(4);
    sink = 0;
    return NULL;
}

static NOINLINE void with_threads(void)
{
    pthread_attr_t attributes;
    pthread_t thread;
    unsigned count = 0;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, (size_t)sysconf(_SC_THREAD_STACK_MIN));
    for (int i = 0; i < TINY_THREADS; i++) {
        if (pthread_create(&thread, &attributes, in_tiny_thread, &count) != 0 ||
            pthread_join(thread, NULL) != 0 || count < 2 || count > 4) {
            compare_fail("a thread with the smallest stack");
        }
    }
    char *stack = mmap(NULL, 16 * SIDE_STACK_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_setstack(&attributes, stack, 16 * SIDE_STACK_BYTES);
    pthread_create(&thread, &attributes, in_thread, NULL);
    pthread_join(thread, NULL);
    munmap(stack, 16 * SIDE_STACK_BYTES);
    pthread_create(&thread, NULL, in_thread, NULL);
    pthread_join(thread, NULL);
}

/* ---- depth
 * ---------------------------------------------------------------------------------------- */

static NOINLINE void at_the_bottom(void)
{
    uint64_t words[100];
    enum vs_stack_note note = VS_STACK_NOTE_NONE;
    (void)compare_here();
    if (lab_unwind(words, 100, &note) != 100 || note != VS_STACK_NOTE_NATIVE_CUT) {
        compare_fail("a deep stack is not cut where it should be");
    }
}

static NOINLINE int deep(int depth)
{
    if (depth == 0) {
        at_the_bottom();
        return sink;
    }
    int result = deep(depth - 1);
    NO_TAIL_CALL();
    return result + sink;
}

/* Cut exactly, one short, and not at all. */
static NOINLINE void at_the_limit(void)
{
    uint64_t words[COMPARE_DEPTH];
    enum vs_stack_note note;
    unsigned all = lab_unwind(words, COMPARE_DEPTH, &note);
    if (lab_unwind(words, all, &note) != all || note != VS_STACK_NOTE_NONE) {
        compare_fail("a stack that just fits");
    }
    if (lab_unwind(words, all - 1, &note) != all - 1 || note != VS_STACK_NOTE_NATIVE_CUT) {
        compare_fail("a stack that just does not fit");
    }
}

/* ---- all of them ----------------------------------------------------------------------- */

/* Realigned functions have no rule of frame pointers: `all` makes them the reason for tables. */
static void run_scenes(bool all)
{
    for (int depth = 0; depth < 12; depth++) {
        sink += recurse(depth) + tail_caller(depth) + many_arguments(1, 2, 3, 4, 5, 6, 7, 8, depth);
        sink = 0;
        sink += all ? aligned_plain(depth + 1, 1, 2, 3, 4, 5, 6, 7) : with_vla(depth + 1);
        sink = 0;
        cold_path(depth == 7);
    }
    sink += large_frame();
    sink = 0;
    through_qsort();
    through_the_library();
    with_signals();
    with_faults();
    with_jumps();
    with_contexts();
    with_threads();
    deep(RECURSION);
    at_the_limit();
    cxx_scenes();
}

int main(int count, char **arguments)
{
    (void)count;
    compare_begin();
    for (int i = 0; i < 16; i++) {
        run_scenes(false);
    }
    int status = compare_end(arguments[0]);
    lab_use_frame_pointers();
    for (int i = 0; i < 3; i++) {
        run_scenes(false);
        run_scenes(true);
    }
    lab_use_tables();
    for (int i = 0; i < 4; i++) {
        run_scenes(true);
    }
    status |= compare_end(arguments[0]);
    if (compare_totals.recalled < RECALLED_MIN) {
        printf("FAILED: only %lu walks were remembered ones\n", compare_totals.recalled);
        status = 1;
    }
    return status;
}
