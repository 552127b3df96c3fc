/* SPDX-License-Identifier: Apache-2.0 */
/* Names against what they are known to mean, and names made to hurt: against time and room. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "demangle.h"

#define OUT_BYTES 1024U

static const char *const table[][2] = {
    /* C and what is no mangled name */
    {"malloc", "malloc"},
    {"_PyEval_EvalFrameDefault", "_PyEval_EvalFrameDefault"},
    {"", ""},
    {"_Z", "_Z"},
    {"_ZN3fooE_broken", "_ZN3fooE_broken"},
    {"a\x1b[31mred", "a?[31mred"},
    {"\xff\xfe", "??"},
    /* C++ */
    {"_Z3addii", "add(int, int)"},
    {"_ZN2at6native5emptyEv", "at::native::empty()"},
    {"_ZNSt6vectorIiSaIiEE9push_backEOi",
     "std::vector<int, std::allocator<int> >::push_back(int&&)"},
    {"_ZN12_GLOBAL__N_13fooC2Ev", "(anonymous namespace)::foo::foo()"},
    {"_ZZ4mainENKUliE_clEi", "main::{lambda(int)#1}::operator()(int) const"},
    {"_Z3addii.cold", "add(int, int) [clone .cold]"},
    {"_Z3addii.constprop.0", "add(int, int) [clone .constprop.0]"},
    /* Rust, legacy */
    {"_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad"},
    {"_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$"
     "3bar17h930b740aa94f1d3aE",
     "<Test + 'static as foo::Bar<Test>>::bar"},
    {"_ZN4testE", "test"}, /* no hash: C++ */
    /* Rust, v0 */
    {"_RNvC6_123foo3bar", "123foo::bar"},
    {"_RNCNCNgCs6DXkGYLi8lr_2cc5spawn00B5_", "cc::spawn::{closure#0}::{closure#0}"},
    {"_RINbNbCskIICzLVDPPb_5alloc5alloc8box_freeDINbNiB4_5boxed5FnBoxuEp6OutputuEL_ECs1iopQbuBiw2_"
     "3std",
     "alloc::alloc::box_free::<dyn alloc::boxed::FnBox<(), Output = ()>>"},
    {"_RNqCs4fqI2P2rA04_11utf8_identsu30____7hkackfecea1cbdathfdh9hlq6y",
     "utf8_idents::\u10e1\u10d0\u10ed\u10db\u10d4\u10da\u10d0\u10d3_\u10d2\u10d4\u10db\u10e0\u10d8"
     "\u10d4\u10da\u10d8_\u10e1\u10d0\u10d3\u10d8\u10da\u10d8"},
};

static int faults;

static void fault(const char *what, const char *symbol, const char *got)
{
    printf("%s: %.200s → %.200s\n", what, symbol, got);
    faults++;
}

static void check_table(void)
{
    char out[OUT_BYTES];
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        demangle(table[i][0], out, sizeof out);
        if (strcmp(out, table[i][1]) != 0)
            fault("another meaning", table[i][0], out);
    }
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Ends soon, fits, is not empty; `cut`: ends in the mark of a cut text. */
static void check_hostile(const char *what, const char *symbol, int cut)
{
    char out[OUT_BYTES];
    double began = seconds();
    memset(out, 1, sizeof out);
    demangle(symbol, out, sizeof out);
    size_t bytes = strnlen(out, sizeof out);
    if (seconds() - began > 2)
        fault("takes too long", what, out);
    if (bytes == sizeof out || bytes == 0)
        fault("no text", what, "");
    else if (cut != (bytes > 3 && strcmp(out + bytes - 3, "\xe2\x80\xa6") == 0))
        fault(cut ? "is not cut" : "is cut", what, out);
}

/* A template whose arguments double with each of `levels`: 2^levels words when written out. */
static char *doubling(int levels)
{
    char *name = malloc((size_t)levels * 32 + 64), *at = name;
    at += sprintf(at, "_Z1f4pairIiiE");
    for (int i = 0; i < levels; i++) {
        char id[8];
        if (i < 36)
            sprintf(id, "S%c_", i < 10 ? '0' + i : 'A' + i - 10);
        else
            sprintf(id, "S1%c_", i - 36 < 10 ? '0' + (i - 36) : 'A' + i - 46);
        at += sprintf(at, "S_I%s%sE", id, id);
    }
    return name;
}

static char *repeated(const char *head, const char *piece, size_t times, const char *tail)
{
    char *name = malloc(strlen(head) + strlen(piece) * times + strlen(tail) + 1), *at = name;
    at = stpcpy(at, head);
    for (size_t i = 0; i < times; i++)
        at = stpcpy(at, piece);
    stpcpy(at, tail);
    return name;
}

static void check_made(const char *what, char *name, int cut)
{
    check_hostile(what, name, cut);
    free(name);
}

int main(void)
{
    check_table();
    check_made("names that double", doubling(60), 1);
    check_made("deep pointers", repeated("_Z1f", "P", 7000, "i"), 1);
    check_made("deep pointers, not accepted", repeated("_Z1f", "P", 100000, "i"), 1);
    check_made("deep templates", repeated("_Z1f", "1AI", 2500, "i"), 1);
    check_made("a long name", repeated("_Z1f", "3abc", 1500, ""), 1);
    check_made("a megabyte", repeated("_ZN", "4name", 200000, "E"), 1);
    check_made("a long name of C", repeated("", "longname", 1000, ""), 1);
    check_made("nested Rust", repeated("_RNv", "Nt", 3000, "C1a"), 1);
    check_made("just fits", repeated("", "x", OUT_BYTES - 1, ""), 0);
    check_made("just does not fit", repeated("", "x", OUT_BYTES, ""), 1);
    printf("%zu names, %d faults\n", sizeof table / sizeof table[0], faults);
    return faults != 0;
}
