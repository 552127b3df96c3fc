/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System calls that touch neither errno nor anything else of the thread: for
 * code that runs in a clone which shares our memory (and so our thread's TLS),
 * in hooks and in signal handlers. All return a negative errno value on failure.
 */
#ifndef VS_SHIM_SYS_H
#define VS_SHIM_SYS_H

#include <sys/syscall.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

static inline long sys_call6(long number, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
#else
#error "no raw system calls for this architecture yet"
#endif
}

#define sys_call0(n) sys_call6((n), 0, 0, 0, 0, 0, 0)
#define sys_call1(n, a) sys_call6((n), (long)(a), 0, 0, 0, 0, 0)
#define sys_call2(n, a, b) sys_call6((n), (long)(a), (long)(b), 0, 0, 0, 0)
#define sys_call3(n, a, b, c) sys_call6((n), (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define sys_call4(n, a, b, c, d) sys_call6((n), (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)

static inline int sys_getpid(void)
{
    return (int)sys_call0(SYS_getpid);
}

static inline int sys_gettid(void)
{
    return (int)sys_call0(SYS_gettid);
}

#endif
