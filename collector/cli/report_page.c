/* SPDX-License-Identifier: Apache-2.0 */
/* The report for people: its sections in their order, the answer first. 100 columns. */
#include "report_sections.h"

void report_print_sections(const struct page *page, const struct report *report)
{
    report_print_ooms(page, report);
    report_print_devices(page, report);
    report_print_growth(page, report);
    report_print_sites(page, report);
    report_print_lifetimes(page, report);
    report_print_churn(page, report);
    report_print_phases(page, report);
    report_print_failures(page, report);
    report_print_objects(page, report);
    report_print_shared(page, report);
    report_print_communicators(page, report);
    report_print_calls(page, report);
    report_print_host(page, report);
    report_print_others(page, report);
    report_print_recording(page, report);
}

void report_print(FILE *out, const struct report *report)
{
    struct page page = page_open(out);
    report_print_head(&page, report);
    report_print_sections(&page, report);
}
