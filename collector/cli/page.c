/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers, bars and emphasis of the text pages. */
#include "page.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct page page_open(FILE *out)
{
    const char *term = getenv("TERM");
    bool rich = isatty(fileno(out)) && getenv("NO_COLOR") == NULL && term != NULL &&
                strcmp(term, "dumb") != 0;
    return (struct page){out, rich};
}

const char *page_bold(const struct page *page)
{
    return page->rich ? "\033[1m" : "";
}

const char *page_alarm(const struct page *page)
{
    return page->rich ? "\033[1;31m" : "";
}

const char *page_plain(const struct page *page)
{
    return page->rich ? "\033[0m" : "";
}

/* Bytes of the first line: up to the last space that fits, or the whole word if it is too long. */
static size_t line_length(const char *text, size_t room)
{
    size_t length = strlen(text);
    if (length <= room)
        return length;
    size_t cut = room;
    while (cut > 0 && text[cut] != ' ')
        cut--;
    return cut > 0 ? cut : strcspn(text, " ");
}

void page_wrap(const struct page *page, int indent, const char *text)
{
    while (*text != 0) {
        size_t length = line_length(text, (size_t)(PAGE_WIDTH - indent));
        fprintf(page->out, "%*s%.*s\n", indent, "", (int)length, text);
        text += length;
        text += strspn(text, " ");
    }
}

struct page_text page_bar(const struct page *page, int64_t part, int64_t whole)
{
    struct page_text bar = {{0}};
    if (!page->rich || whole <= 0 || part <= 0)
        return bar;
    double share = (double)part / (double)whole;
    int columns = (int)((share > 1 ? 1 : share) * PAGE_BAR + 0.5);
    static const char block[] = "█";
    size_t bytes = sizeof(block) - 1;
    for (int i = 0; i < columns; i++)
        memcpy(bar.text + (size_t)i * bytes, block, bytes + 1);
    return bar;
}

struct page_text page_count(uint64_t number)
{
    char digits[24];
    struct page_text out;
    int length = snprintf(digits, sizeof(digits), "%" PRIu64, number);
    size_t at = 0;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            out.text[at++] = ',';
        out.text[at++] = digits[i];
    }
    out.text[at] = 0;
    return out;
}

struct page_text page_fit(const char *text, size_t columns)
{
    struct page_text out;
    size_t length = strlen(text);
    if (columns > sizeof(out.text) - 8)
        columns = sizeof(out.text) - 8;
    if (length <= columns)
        snprintf(out.text, sizeof(out.text), "%s", text);
    else
        snprintf(out.text, sizeof(out.text), "...%s", text + length - columns + 3);
    return out;
}
