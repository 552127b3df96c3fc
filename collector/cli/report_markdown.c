/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `vramscope report --markdown`: the answer, and the page folded below it, for an
 * issue tracker. What comes from the traced program becomes code: trackers read
 * no markup, no mention and no link there. At most 60 lines and 8 KiB.
 */
#include <ctype.h>
#include <stdlib.h>

#include "report_sections.h"

enum {
    MARKDOWN_LINES = 60,
    MARKDOWN_BYTES = 8192,
    FRAME_BYTES = 400, /* of the fold around the page, and the line that says what was left out */
    FRAME_LINES = 10,
    COMMIT_LEAST = 7, /* digits that a tracker takes for a commit */
};

/* A text that is being made in memory. */
struct text {
    char *bytes;
    size_t length;
    FILE *out;
};

static bool text_open(struct text *text)
{
    text->bytes = NULL;
    text->out = open_memstream(&text->bytes, &text->length);
    return text->out != NULL;
}

/* False when there was no memory for all of it. Free `bytes` in any case. */
static bool text_close(struct text *text)
{
    bool whole = text->out != NULL && !ferror(text->out);
    return text->out != NULL && fclose(text->out) == 0 && whole;
}

/* Names may hold anything: what would move the cursor or end a line becomes a blank. */
static void blank_controls(char *text, const char *kept)
{
    for (; *text != 0; text++)
        if (((unsigned char)*text < ' ' && strchr(kept, *text) == NULL) || *text == 0x7f)
            *text = ' ';
}

/* ---- words ---------------------------------------------------------------------------------- */

static size_t longest_run(const char *text, size_t length, char of)
{
    size_t longest = 0, run = 0;
    for (size_t i = 0; i < length; i++) {
        run = text[i] == of ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    return longest;
}

static bool looks_like_commit(const char *word, size_t length)
{
    size_t digits = 0;
    while (digits < length && isxdigit((unsigned char)word[digits]))
        digits++;
    return digits == length && length >= COMMIT_LEAST;
}

/* A word of prose or a number: nothing that any tracker reads as markup or as a link. */
static bool is_plain(const char *word, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        bool inside = i > 0 && i + 1 < length;
        bool of_number = inside && strchr(".,", word[i]) != NULL &&
                         isdigit((unsigned char)word[i - 1]) && isdigit((unsigned char)word[i + 1]);
        bool of_word = inside && strchr("-'", word[i]) != NULL &&
                       isalpha((unsigned char)word[i - 1]) && isalpha((unsigned char)word[i + 1]);
        if (!isalnum((unsigned char)word[i]) && !of_number && !of_word)
            return false;
    }
    return !looks_like_commit(word, length);
}

static void print_code(FILE *out, const char *word, size_t length)
{
    size_t ticks = longest_run(word, length, '`') + 1;
    bool apart = word[0] == '`' || word[length - 1] == '`';
    for (size_t i = 0; i < ticks; i++)
        fputc('`', out);
    fprintf(out, "%s%.*s%s", apart ? " " : "", (int)length, word, apart ? " " : "");
    for (size_t i = 0; i < ticks; i++)
        fputc('`', out);
}

/* One word with the punctuation around it. */
static void print_word(FILE *out, const char *word, size_t length)
{
    size_t before = word[0] == '(' ? 1 : 0, behind = 0;
    while (before + behind < length && strchr(".,;:)", word[length - 1 - behind]) != NULL)
        behind++;
    size_t core = length - before - behind;
    bool alone = core == 1 && word[before] == '%';
    fprintf(out, "%.*s", (int)before, word);
    if (core > 0 && (alone || is_plain(word + before, core)))
        fprintf(out, "%.*s", (int)core, word + before);
    else if (core > 0)
        print_code(out, word + before, core);
    fprintf(out, "%.*s", (int)behind, word + length - behind);
}

static void print_prose(FILE *out, const char *line, size_t length)
{
    const char *end = line + length;
    bool first = true;
    while (line < end) {
        size_t blanks = strspn(line, " "), word;
        line += blanks;
        word = strcspn(line, " \n");
        if (line >= end || word == 0)
            break;
        if (!first)
            fputc(' ', out);
        print_word(out, line, word);
        line += word;
        first = false;
    }
}

/* ---- parts ---------------------------------------------------------------------------------- */

typedef void part(const struct page *page, const struct report *report);

/* A part of the page as prose: each line with `lead` before it, or all as one paragraph. */
static bool print_part(FILE *out, const struct report *report, part *print, const char *lead)
{
    struct text text;
    if (!text_open(&text))
        return false;
    print(&(struct page){text.out, false}, report);
    bool whole = text_close(&text);
    if (whole)
        blank_controls(text.bytes, "\n");
    for (const char *at = text.bytes; whole && *at != 0;) {
        size_t length = strcspn(at, "\n");
        fputs(lead != NULL ? lead : at != text.bytes ? " " : "", out);
        print_prose(out, at, length);
        at += length + (at[length] == '\n');
        if (lead != NULL || *at == 0)
            fputc('\n', out);
    }
    free(text.bytes);
    return whole;
}

/* The page that is folded away; other ranks first, because its end may not fit. */
static void print_page(const struct page *page, const struct report *report)
{
    struct report one = *report;
    one.others = NULL;
    report_print_others(page, report);
    report_print_sections(page, &one);
}

static size_t lines_of(const char *text, size_t length)
{
    size_t lines = 0;
    for (size_t i = 0; i < length; i++)
        lines += text[i] == '\n';
    return lines;
}

/* Bytes of the whole lines at the start of `text` that fit. */
static size_t fitting(const char *text, size_t bytes, size_t lines)
{
    size_t taken = 0;
    while (text[taken] != 0 && lines-- > 0) {
        size_t length = strcspn(text + taken, "\n");
        length += text[taken + length] == '\n';
        if (taken + length > bytes)
            break;
        taken += length;
    }
    return taken;
}

/* The page stands in a fence of three backticks; what would end it must not look like one. */
static void break_fences(char *text)
{
    while ((text = strstr(text, "```")) != NULL)
        for (; *text == '`'; text++)
            *text = '\'';
}

/* `used`: what stands above it already. */
static void print_fold(FILE *out, const char *page, const struct text *used)
{
    size_t lines = lines_of(used->bytes, used->length) + FRAME_LINES;
    size_t bytes = used->length + FRAME_BYTES;
    size_t taken = fitting(page, bytes < MARKDOWN_BYTES ? MARKDOWN_BYTES - bytes : 0,
                           lines < MARKDOWN_LINES ? MARKDOWN_LINES - lines : 0);
    size_t left_out = lines_of(page + taken, strlen(page + taken));
    fprintf(out, "\n<details><summary>The whole report</summary>\n\n```text\n%.*s", (int)taken,
            page);
    if (left_out != 0)
        fprintf(out, "… %zu more lines: `vramscope report` on the trace prints them\n", left_out);
    fputs("```\n\n</details>\n", out);
}

bool report_write_markdown(FILE *out, const struct report *report)
{
    struct text head = {0}, page = {0};
    bool whole = text_open(&head);
    if (whole) {
        fputs("**vramscope**: ", head.out);
        whole = print_part(head.out, report, report_print_program, NULL);
        fputc('\n', head.out);
        whole = whole && print_part(head.out, report, report_print_answer, NULL) &&
                print_part(head.out, report, report_print_losses, "- ");
    }
    whole = text_close(&head) && whole && text_open(&page);
    if (whole)
        print_page(&(struct page){page.out, false}, report);
    whole = whole && text_close(&page);
    if (whole) {
        blank_controls(page.bytes, "\n");
        break_fences(page.bytes);
        fputs(head.bytes, out);
        print_fold(out, page.bytes + strspn(page.bytes, "\n"), &head);
    }
    free(head.bytes);
    free(page.bytes);
    return whole;
}
