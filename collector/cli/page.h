/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text for people: numbers, bars and emphasis, plain when the output is not a
 * terminal. A page is 100 columns wide.
 */
#ifndef VS_CLI_PAGE_H
#define VS_CLI_PAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { PAGE_WIDTH = 100, PAGE_BAR = 19 };

struct page {
    FILE *out;
    bool rich; /* a terminal that shows colour and block characters */
};

/* Colour on a terminal, unless NO_COLOR is set or TERM is dumb. */
struct page page_open(FILE *out);

/* Begin and end of emphasised text; "" on a plain page. */
const char *page_bold(const struct page *page);
const char *page_alarm(const struct page *page);
const char *page_plain(const struct page *page);

struct page_text {
    char text[112];
};

/* Prints `text` indented, broken between words so that no line is longer than the page. */
void page_wrap(const struct page *page, int indent, const char *text);

/* A bar of up to PAGE_BAR columns for part/whole on a terminal; "" on a plain page. */
struct page_text page_bar(const struct page *page, int64_t part, int64_t whole);
/* 1234567 → "1,234,567". */
struct page_text page_count(uint64_t number);
/* The last part of a path that fits in `columns`, from the left cut with "…". */
struct page_text page_fit(const char *text, size_t columns);

#endif
