/* SPDX-License-Identifier: Apache-2.0 */
/* The page and the JSON of a verdict. */
#include "print.h"

#include <jansson.h>
#include <string.h>

#include "../page.h"
#include "replay/format_size.h"

/* ---- page --------------------------------------------------------------------------------- */

static void print_numbers(const struct page *page, const struct verdict *verdict)
{
    const struct message *subject = &verdict->subject;
    int64_t whole = number_of(subject, NUMBER_TOTAL);
    for (int i = 0; i < NUMBERS; i++) {
        enum number number = (enum number)i;
        if (!number_known(subject, number))
            continue;
        int64_t bytes = number_of(subject, number);
        /* Less than what rounding alone makes is not a figure. */
        bool nothing = bytes > 0 && bytes <= subject->numbers[i].rounding;
        struct page_text bar = page_bar(page, bytes, number == NUMBER_TOTAL ? 0 : whole);
        fprintf(page->out, "  %-36s %10s%s%s\n", number_title(number),
                nothing ? "about 0" : vs_format_size(bytes).text, bar.text[0] != 0 ? "  " : "",
                bar.text);
    }
}

static void print_list(const struct page *page, const char *title,
                       const struct verdict_lines *lines)
{
    if (lines->count == 0)
        return;
    fprintf(page->out, "\n%s%s%s\n", page_bold(page), title, page_plain(page));
    for (size_t i = 0; i < lines->count; i++)
        page_wrap(page, 2, lines->text[i]);
}

void verdict_print_page(FILE *out, const struct verdict *verdict)
{
    struct page page = page_open(out);
    char sentence[VERDICT_WHY + 40];
    snprintf(sentence, sizeof(sentence), "%s: %s.", verdict->class, verdict->why);
    fputs(page_bold(&page), out);
    page_wrap(&page, 0, sentence);
    fprintf(out, "%s\n", page_plain(&page));
    fprintf(out, "%s%s%s\n", page_bold(&page), "The numbers", page_plain(&page));
    page_wrap(&page, 2, verdict->source);
    print_numbers(&page, verdict);
    print_list(&page, "What they cannot tell", &verdict->cannot_tell);
    print_list(&page, "Next", &verdict->next);
}

/* ---- JSON --------------------------------------------------------------------------------- */

static json_t *numbers_json(const struct verdict *verdict)
{
    json_t *object = json_object();
    int64_t rounding = 0;
    for (int i = 0; i < NUMBERS; i++) {
        const struct amount *amount = &verdict->subject.numbers[i];
        if (!amount->known)
            continue;
        json_object_set_new(object, number_name((enum number)i), json_integer(amount->bytes));
        rounding = amount->rounding > rounding ? amount->rounding : rounding;
    }
    /* Every figure is within this of the true one. */
    json_object_set_new(object, "rounding_bytes", json_integer(rounding));
    return object;
}

/* "$ " marks a command on the page; here the command stands alone. */
static json_t *lines_json(const struct verdict_lines *lines)
{
    json_t *array = json_array();
    for (size_t i = 0; i < lines->count; i++) {
        const char *text = lines->text[i];
        json_array_append_new(array, json_string(strncmp(text, "$ ", 2) == 0 ? text + 2 : text));
    }
    return array;
}

bool verdict_print_json(FILE *out, const struct verdict *verdict)
{
    const struct message *subject = &verdict->subject;
    json_t *object = json_object();
    json_object_set_new(object, "schema", json_string("vramscope-explain/1"));
    json_object_set_new(object, "class", json_string(verdict->class));
    json_object_set_new(object, "why", json_string(verdict->why));
    json_object_set_new(object, "from", json_string(family_name(subject->family)));
    json_object_set_new(object, "device",
                        subject->device >= 0 ? json_integer(subject->device) : json_null());
    json_object_set_new(object, "failures", json_integer((json_int_t)verdict->failures));
    json_object_set_new(object, "numbers", numbers_json(verdict));
    json_object_set_new(object, "cannot_tell", lines_json(&verdict->cannot_tell));
    json_object_set_new(object, "next", lines_json(&verdict->next));
    bool written = json_dumpf(object, out, JSON_INDENT(2)) == 0 && fputc('\n', out) != EOF;
    json_decref(object);
    return written;
}
