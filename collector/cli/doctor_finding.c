/* SPDX-License-Identifier: Apache-2.0 */
/* One finding, one line: see doctor_finding.h. */
#include "doctor_finding.h"

#include <stdarg.h>
#include <stdio.h>

static void print_line(const char *mark, const char *format, va_list arguments)
{
    printf("%-6s", mark);
    vprintf(format, arguments);
    putchar('\n');
}

void doctor_ok(struct doctor *doctor, const char *format, ...)
{
    va_list arguments;
    (void)doctor;
    va_start(arguments, format);
    print_line("ok", format, arguments);
    va_end(arguments);
}

void doctor_note(struct doctor *doctor, const char *format, ...)
{
    va_list arguments;
    (void)doctor;
    va_start(arguments, format);
    print_line("-", format, arguments);
    va_end(arguments);
}

void doctor_fault(struct doctor *doctor, const char *format, ...)
{
    va_list arguments;
    doctor->faults++;
    va_start(arguments, format);
    print_line("FAULT", format, arguments);
    va_end(arguments);
}
