/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text that went through a web page, a mail or a word processor: entities, tags that only
 * lay out, blanks that are not ASCII's. They become what they stand for, in place.
 */
#include "paste.h"

static const struct {
    const char *from, *to;
} markup[] = {
    {"&nbsp;", " "},        {"&#160;", " "},       {"&gt;", ">"},
    {"&lt;", "<"},          {"&quot;", "\""},      {"&#34;", "\""},
    {"&apos;", "'"},        {"&#39;", "'"},        {"&#x27;", "'"},
    {"&amp;", "&"},         {"<br>", " "},         {"<br/>", " "},
    {"<br />", " "},        {"<p>", " "},          {"</p>", " "},
    {"<pre>", ""},          {"</pre>", ""},        {"<code>", ""},
    {"</code>", ""},        {"<div>", ""},         {"</div>", ""},
    {"</span>", ""},        {"<b>", ""},           {"</b>", ""},
    {"<strong>", ""},       {"</strong>", ""},     {"<td>", ""},
    {"</td>", ""},          {"\xc2\xa0", " "}, /* no-break space */
    {"\xe2\x80\xaf", " "},                     /* narrow no-break space */
    {"\xe2\x80\x8b", ""},                      /* zero-width space */
    {"\xef\xbb\xbf", ""},                      /* byte-order mark */
    {"\xe2\x80\x98", "'"},  {"\xe2\x80\x99", "'"}, {"\xe2\x80\x9c", "\""},
    {"\xe2\x80\x9d", "\""},
};

enum { MARKUPS = sizeof(markup) / sizeof(markup[0]) };

/* "<span style=…>": the one tag that comes with attributes. */
static bool take_span(struct cursor *in)
{
    struct cursor ahead = *in;
    if (!cursor_take(&ahead, "<span") || !cursor_find(&ahead, ">", 200))
        return false;
    *in = ahead;
    return true;
}

/* The replacement of what is next; NULL, and nothing stepped over, where it is plain text. */
static const char *take_markup(struct cursor *in)
{
    if ((unsigned char)*in->at < 0x80 && *in->at != '&' && *in->at != '<')
        return NULL;
    for (size_t i = 0; i < MARKUPS; i++)
        if (cursor_take(in, markup[i].from))
            return markup[i].to;
    return take_span(in) ? "" : NULL;
}

size_t markup_away(char *line, size_t length)
{
    struct cursor in = cursor_of(line, length);
    char *out = line;
    while (in.at < in.end) {
        const char *to = take_markup(&in);
        if (to == NULL) {
            *out++ = *in.at++;
            continue;
        }
        while (*to != 0) /* never longer than what it replaces */
            *out++ = *to++;
    }
    return (size_t)(out - line);
}
