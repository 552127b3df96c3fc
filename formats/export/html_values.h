/* SPDX-License-Identifier: Apache-2.0 */
/* What the writers of a page's data share: JSON's values and commas, numbers of places. */
#ifndef VS_EXPORT_HTML_VALUES_H
#define VS_EXPORT_HTML_VALUES_H

#include "html_names.h"
#include "html_page.h"

enum { VS_HTML_PLACES = 6000 };

struct vs_html_data {
    const struct vs_html *html;
    struct vs_sink *sink;
    struct vs_html_names strings, frames;
    const struct vs_site **order; /* of the first reading, by what they are */
    /* By site of the second reading, - 1: index of its place + 1, 0 not asked for yet. */
    uint32_t *place_of;
    size_t place_of_count;
    uint32_t *number; /* by place: its number in the page + 1 */
    uint32_t *places; /* by number */
    size_t place_count;
    int error;
};

/* 0 or -ENOMEM; release it in any case. `html` must stay. */
int vs_html_open(struct vs_html_data *data, const struct vs_html *html);
void vs_html_release(struct vs_html_data *data);

/* The next value of a list or object: a comma unless it is the first. */
static inline void vs_html_next(struct vs_sink *sink, bool *any)
{
    if (*any)
        vs_sink_put(sink, ",", 1);
    *any = true;
}

void vs_html_integer(struct vs_sink *sink, int64_t value);
/* Quoted for JSON inside a script element: nothing in it ends the element. */
void vs_html_text(struct vs_html_data *data, const char *text);
/* `"name":"text"`, null for NULL and "". */
void vs_html_text_member(struct vs_html_data *data, const char *name, const char *text);
void vs_html_integer_member(struct vs_sink *sink, const char *name, int64_t value);
void vs_html_integer_member_if(struct vs_sink *sink, const char *name, bool known, int64_t value);

/* Index of the place of a site of the second reading; UINT32_MAX without one. */
uint32_t vs_html_place(struct vs_html_data *data, uint32_t site);
/* A place's number in the page, given when asked for first; -1 when there are too many. */
long vs_html_number(struct vs_html_data *data, uint32_t place);
/* The same of a site of the first reading, as a member; null without one. */
void vs_html_place_member(struct vs_html_data *data, const char *name, uint32_t site);

#endif
