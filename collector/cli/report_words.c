/* SPDX-License-Identifier: Apache-2.0 */
/* See report_words.h. */
#include "report_words.h"

#include "replay/layers.h"

void report_heading(const struct page *page, const char *text)
{
    fprintf(page->out, "\n%s%s%s\n", page_bold(page), text, page_plain(page));
}

const char *report_call_title(const struct vs_summary *summary, uint16_t label)
{
    const char *name = vs_state_string(summary->state, label);
    return vs_layer_of_call(name) != NULL ? "an allocation" : name;
}
