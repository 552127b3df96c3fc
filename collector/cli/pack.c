/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vramscope pack: one .zip for an issue tracker. A redacted copy of the trace, and
 * what reports say of that copy, so that nothing of the original is in any of them.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commands.h"
#include "export/export.h"
#include "output_file.h"
#include "pack_copies.h"
#include "pack_cut.h"
#include "private_path.h"
#include "redact_trace.h"
#include "replay/format_size.h"
#include "report.h"
#include "report_inside.h"
#include "time_size.h"
#include "trace_argument.h"
#include "zip_file.h"

#define TRACE_NAME "trace" VS_TRACE_SUFFIX
#define DEFAULT_OUT "vramscope-pack.zip"
#define LIMIT_BYTES 10000000 /* what trackers take */
#define NOTE_BYTES 8192U     /* what reports may grow by when they say what was cut */
enum { GAPS_LISTED = 8 };

static const char help[] =
    "usage: vramscope pack [-o OUT.zip] [--yes] [--force] [--limit SIZE] [--from T] [--to T]\n"
    "                      [--all] TRACE|DIR\n"
    "\n"
    "Makes one .zip for an issue tracker: the redacted trace (see `vramscope redact`), and the\n"
    "report of it as text, Markdown, JSON and an HTML page. Says what is inside, and asks before\n"
    "it writes where there is somebody to ask. Of a folder the trace that ended in a failure is "
    "taken,\n"
    "else the one with the highest peak; the others are named in the report. Every command\n"
    "that reads a trace reads the .zip.\n"
    "\n"
    "  -o OUT.zip     the archive (" DEFAULT_OUT ")\n"
    "  --yes          does not ask\n"
    "  --force        writes over OUT.zip\n"
    "  --limit SIZE   larger it must not be (10 MB): the HTML page is left out, then the\n"
    "                 trace is cut to what was around the peaks, the failures and the end,\n"
    "                 or left out; the reports are of all of it\n"
    "  --from T, --to T\n"
    "                 cuts the trace to what happened then, and what was around the peaks, the\n"
    "                 failures and the end; seconds since the beginning, before the end if below\n"
    "                 zero (12.5, 300ms, -2)\n"
    "  --all          of a folder the other traces too, redacted alike, as far as the limit has\n"
    "                 room: unpacked, the folder is one for `vramscope report`\n"
    "\n"
    "Exit status: 0 done, 1 could not, not all of the trace could be read, or a file is left\n"
    "out, 2 usage.\n";

/* ---- what goes in besides the trace ----------------------------------------------------- */

static bool write_text(FILE *out, const struct report *report)
{
    report_print(out, report);
    return true;
}

static int put_into(void *self, const void *data, size_t bytes)
{
    return fwrite(data, 1, bytes, self) == bytes ? 0 : -ENOMEM;
}

/* The page of a trace; `why` says what is wrong when there is none. */
static bool write_page(FILE *out, const char *path, struct vs_error *why)
{
    struct vs_export export = {.path = path, .called = TRACE_NAME, .device = -1};
    const struct vs_export_format *format = vs_export_format("html");
    struct vs_sink *sink = malloc(sizeof(*sink));
    int result = sink == NULL ? -ENOMEM : vs_export_open(&export, why);
    if (result == 0) {
        vs_sink_init(sink, put_into, out);
        export.sink = sink;
        result = format->run(&export);
        if (result == 0)
            result = vs_sink_flush(sink);
    }
    if (result != 0 && why->text[0] == 0)
        snprintf(why->text, sizeof(why->text), "%s", strerror(-result));
    vs_export_close(&export);
    free(sink);
    return result == 0;
}

static const struct pack_row {
    const char *name;
    bool (*write)(FILE *out, const struct report *report);
} rows[] = {
    {"report.md", report_write_markdown},
    {"report.txt", write_text},
    {"report.json", report_write_json},
};

/* The trace first: a cut archive still has it. The page last. */
enum { ROWS = sizeof(rows) / sizeof(rows[0]), PAGE = 1 + ROWS, MEMBERS };
static const char page_name[] = "report.html";

struct packing {
    const char *out;
    bool yes, force, all;
    int64_t limit_bytes;
    struct vs_window window; /* of the trace, if one was chosen */
    const char *trace_path;  /* the redacted copy */
    int trace_fd;
    uint64_t trace_bytes;
    struct zip_member members[MEMBERS];
    size_t first, end; /* of the members that go in */
    int cut_fd;        /* room for the cut trace */
    struct pack_cut cut;
    struct vs_error no_page;
    uint64_t start_ns; /* of the trace */
    /* Of a folder with --all: the other traces, and what they are called in the archive. */
    const struct report_other *others;
    const struct report_others *named;
    struct pack_copies copies;
};

enum { NAME_COLUMNS = 14 };

static int make_member(const struct pack_row *row, const struct report *report,
                       struct zip_member *member)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    bool whole = out != NULL && row->write(out, report) && !ferror(out);
    whole = out != NULL && fclose(out) == 0 && whole;
    int error = whole ? zip_deflate(row->name, text, bytes, member) : -ENOMEM;
    free(text);
    return error;
}

/* An archive without the page is one too. */
static int make_page(struct packing *packing)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (out == NULL)
        return -ENOMEM;
    bool whole = write_page(out, packing->trace_path, &packing->no_page);
    int error = fclose(out) != 0 ? -ENOMEM : 0;
    if (whole && error == 0)
        error = zip_deflate(page_name, text, bytes, &packing->members[PAGE]);
    packing->end = whole ? MEMBERS : PAGE;
    free(text);
    return error;
}

/* ---- writing ------------------------------------------------------------------------------ */

static uint64_t archive_bytes(const struct packing *packing)
{
    return zip_bytes(packing->members + packing->first, packing->end - packing->first);
}

static bool is_chosen(const struct packing *packing)
{
    return packing->window.has_from || packing->window.has_to;
}

/* What the trace in the archive lacks. */
static void list_cut(const struct packing *packing)
{
    const struct vs_cuts *cuts = &packing->cut.cuts;
    char text[160];
    if (cuts->gaps == 0)
        return;
    printf("cut: %s, of %s, because of ", TRACE_NAME,
           vs_format_size((int64_t)packing->trace_bytes).text);
    if (is_chosen(packing))
        printf("--from and --to:\n");
    else
        printf("--limit %" PRId64 ":\n", packing->limit_bytes);
    for (size_t i = 0; i < cuts->count && i < GAPS_LISTED; i++) {
        vs_gap_text(&cuts->items[i], packing->start_ns, text, sizeof(text));
        printf("  %s\n", text);
    }
    if (cuts->gaps > GAPS_LISTED)
        printf("  in all %" PRIu64 " events in %" PRIu64 " gaps\n", cuts->events, cuts->gaps);
    printf("they are short-lived blocks and events of streams; the reports are of all of it\n");
}

static void list_left_out(const struct packing *packing)
{
    if (packing->no_page.text[0] != 0)
        printf("left out: %s: %s\n", page_name, packing->no_page.text);
    else if (packing->end == PAGE)
        printf("left out: %s, %s, because of --limit %" PRId64 "\n", page_name,
               vs_format_size((int64_t)packing->members[PAGE].bytes).text, packing->limit_bytes);
    if (packing->first > 0)
        printf("left out: %s, %s, because of --limit %" PRId64 "; the reports are of all of it\n",
               TRACE_NAME, vs_format_size((int64_t)packing->trace_bytes).text,
               packing->limit_bytes);
    if (packing->copies.left_out > 0)
        printf("left out: %zu of the other traces, because of --limit %" PRId64 "\n",
               packing->copies.left_out, packing->limit_bytes);
}

/* All that goes in, one behind the other: to be freed. NULL without memory. */
static struct zip_member *all_members(const struct packing *packing, size_t *count)
{
    const struct pack_copies *copies = &packing->copies;
    size_t own = packing->end - packing->first;
    struct zip_member *all = calloc(own + copies->count, sizeof(*all));
    if (all == NULL)
        return NULL;
    memcpy(all, packing->members + packing->first, own * sizeof(*all));
    if (copies->count > 0)
        memcpy(all + own, copies->members, copies->count * sizeof(*all));
    *count = own + copies->count;
    return all;
}

static void list_members(const struct packing *packing, const struct zip_member *members,
                         size_t count)
{
    int columns = NAME_COLUMNS;
    for (size_t i = 0; i < count; i++)
        if ((int)strlen(members[i].name) > columns)
            columns = (int)strlen(members[i].name);
    printf("\n%s will hold, %s in all:\n", packing->out,
           vs_format_size((int64_t)zip_bytes(members, count)).text);
    for (size_t i = 0; i < count; i++)
        printf("  %-*s %10s\n", columns, members[i].name,
               vs_format_size((int64_t)members[i].bytes).text);
    if (packing->copies.count > 0)
        printf("the other traces disclose what the first does, of their own processes\n");
    list_left_out(packing);
    list_cut(packing);
}

/* Somebody at a terminal is asked; a script has said what it wants. */
static bool may_write(const struct packing *packing)
{
    char answer[16];
    if (packing->yes || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return true;
    printf("Write %s? [y/N] ", packing->out);
    fflush(stdout);
    return fgets(answer, sizeof(answer), stdin) != NULL && (answer[0] == 'y' || answer[0] == 'Y');
}

static int write_archive(const struct packing *packing, const struct zip_member *members,
                         size_t count)
{
    struct output_file output;
    if (!output_open(&output, packing->out, packing->force, true))
        return CMD_FAILED;
    int error = zip_write(output.fd, members, count);
    if (error != 0)
        output_complain(packing->out, -error);
    bool kept = error == 0 && output_keep(&output);
    output_discard(&output);
    return kept ? CMD_DONE : CMD_FAILED;
}

static bool is_too_large(const struct packing *packing)
{
    return archive_bytes(packing) > (uint64_t)packing->limit_bytes;
}

static int make_rows(struct packing *packing, const struct report *report)
{
    int error = 0;
    for (size_t i = 0; i < ROWS && error == 0; i++) {
        zip_free(&packing->members[1 + i], 1);
        packing->members[1 + i] = (struct zip_member){0};
        error = make_member(&rows[i], report, &packing->members[1 + i]);
    }
    return error;
}

/* The trace cut to the room that is left. False with a line on stderr; `first` says if it is in. */
static bool cut_trace(struct packing *packing, const struct report *report,
                      const struct pack_window *chosen)
{
    uint64_t others = archive_bytes(packing) - packing->trace_bytes + NOTE_BYTES;
    uint64_t limit_bytes = (uint64_t)packing->limit_bytes;
    packing->first = 1;
    if (others >= limit_bytes)
        return true;
    pack_cut_make(&packing->cut, packing->trace_path, packing->cut_fd, limit_bytes - others,
                  chosen);
    if (packing->cut.bytes == 0)
        return true;
    struct report told = *report;
    told.beside = packing->cut.cuts.gaps != 0 ? &packing->cut.cuts : NULL;
    packing->first = 0;
    int error = zip_store(TRACE_NAME, packing->cut_fd, packing->cut.bytes, packing->members);
    if (error == 0)
        error = make_rows(packing, &told);
    if (error != 0)
        fprintf(stderr, "vramscope: %s: %s\n", packing->out, strerror(-error));
    return error == 0;
}

/* The trace cut to the part that was chosen; the page is in if there is room for it as well. */
static bool cut_to_window(struct packing *packing, const struct report *report)
{
    struct pack_window chosen;
    size_t end = packing->end;
    if (vs_summary_stretch(report->summary, &packing->window, &chosen.from_ns, &chosen.to_ns) !=
        0) {
        fprintf(stderr, "vramscope: --from and --to leave nothing of the run, which took %s\n",
                vs_format_time(report->summary->duration_ns).text);
        return false;
    }
    packing->end = PAGE;
    if (!cut_trace(packing, report, &chosen))
        return false;
    packing->end = end;
    return true;
}

/* Leaves out the page, or cuts the trace, where that gives room. */
static bool cut_to_limit(struct packing *packing, const struct report *report)
{
    size_t end = packing->end;
    if (is_too_large(packing))
        packing->end = PAGE;
    if (is_too_large(packing)) {
        packing->first = 1;
        packing->end = end;
        if (archive_bytes(packing) > (uint64_t)packing->limit_bytes / 2)
            packing->end = PAGE;
        packing->first = 0;
        return cut_trace(packing, report, NULL);
    }
    return true;
}

/*
 * Leaves out or cuts what the limit has no room for, or what was not chosen; a page that leaves
 * half of it to the trace stays. False with a line on stderr, also when the reports alone are too
 * large.
 */
static bool fit(struct packing *packing, const struct report *report)
{
    if (!(is_chosen(packing) ? cut_to_window(packing, report) : cut_to_limit(packing, report)))
        return false;
    if (is_too_large(packing))
        packing->end = PAGE;
    if (!is_too_large(packing))
        return true;
    fprintf(stderr, "vramscope: %s: the reports alone take %s, more than --limit\n", packing->out,
            vs_format_size((int64_t)archive_bytes(packing)).text);
    return false;
}

/* One line for what is not in the archive. */
static void tell_left_out(const struct packing *packing)
{
    if (packing->first > 0)
        fprintf(stderr,
                "vramscope: %s: the trace (%s) does not fit into --limit and is left out; the "
                "reports are in%s%s\n",
                packing->out, vs_format_size((int64_t)packing->trace_bytes).text,
                packing->cut.why.text[0] == 0 ? "" : "; it cannot be cut: ", packing->cut.why.text);
    else if (packing->no_page.text[0] != 0)
        fprintf(stderr, "vramscope: %s: %s is left out: %s\n", packing->out, page_name,
                packing->no_page.text);
    else if (packing->end == PAGE)
        fprintf(stderr, "vramscope: %s: %s does not fit into --limit and is left out\n",
                packing->out, page_name);
    else if (packing->copies.left_out > 0)
        fprintf(stderr, "vramscope: %s: %zu of the other traces do not fit into --limit\n",
                packing->out, packing->copies.left_out);
}

/* The other traces, where the first is in: readers take the first trace of an archive. */
static bool add_others(struct packing *packing)
{
    if (!packing->all || packing->named == NULL || packing->first > 0)
        return true;
    return pack_copies_make(&packing->copies, packing->others, packing->named,
                            (uint64_t)packing->limit_bytes - archive_bytes(packing));
}

static int list_and_write(struct packing *packing, const struct zip_member *members, size_t count)
{
    list_members(packing, members, count);
    if (!may_write(packing)) {
        fputs("vramscope: nothing was written\n", stderr);
        return CMD_FAILED;
    }
    int status = write_archive(packing, members, count);
    if (status != CMD_DONE)
        return status;
    printf("%s is written; put it into the bug report\n", packing->out);
    tell_left_out(packing);
    bool whole = packing->first == 0 && packing->end == MEMBERS && packing->copies.left_out == 0;
    return whole ? CMD_DONE : CMD_FAILED;
}

static int finish(struct packing *packing, const struct report *report)
{
    size_t count = 0;
    if (!fit(packing, report) ||
        !report_print_inside(stdout, packing->trace_path, TRACE_NAME, false, NULL) ||
        !add_others(packing))
        return CMD_FAILED;
    struct zip_member *members = all_members(packing, &count);
    int status = members == NULL ? CMD_FAILED : list_and_write(packing, members, count);
    if (members == NULL)
        fprintf(stderr, "vramscope: %s: %s\n", packing->out, strerror(ENOMEM));
    free(members);
    return status;
}

static int make_members(const struct report *report, void *self)
{
    struct packing *packing = self;
    int error = zip_store(TRACE_NAME, packing->trace_fd, packing->trace_bytes, packing->members);
    packing->start_ns = report->summary->start_ns;
    if (error == 0)
        error = make_rows(packing, report);
    if (error == 0)
        error = make_page(packing);
    if (error != 0)
        fprintf(stderr, "vramscope: %s: %s\n", packing->out, strerror(-error));
    int status = error == 0 ? finish(packing, report) : CMD_FAILED;
    zip_free(packing->members, MEMBERS);
    return status;
}

/* ---- the copy ------------------------------------------------------------------------------- */

static int pack_copy(struct packing *packing, const struct report_others *others)
{
    static const struct report_options options = {.by = VS_BY_LINE, .device = -1};
    struct vs_summary *summary = load_trace(packing->trace_path, NULL, NULL);
    if (summary == NULL)
        return CMD_FAILED;
    int status = vs_reader_call(summary->reader, TRACE_NAME) == 0
                     ? report_make(TRACE_NAME, summary, &options, others, make_members, packing)
                     : CMD_FAILED;
    vs_summary_free(summary);
    return status;
}

static int pack_trace(const char *trace, struct packing *packing,
                      const struct report_others *others)
{
    struct vs_redacted redacted;
    char *path = NULL, *cut_path = NULL;
    bool whole = true;
    int status = CMD_FAILED;
    if (pack_room(&cut_path, &packing->cut_fd) && unlink(cut_path) == 0 &&
        pack_room(&path, &packing->trace_fd)) {
        packing->trace_path = path;
        if (redact_trace(trace, pack_copy_name, packing->trace_fd, &redacted, &whole)) {
            packing->trace_bytes = redacted.bytes;
            if (redacted.bytes > (uint64_t)packing->limit_bytes || is_chosen(packing))
                pack_cut_begin(&packing->cut, path);
            status = pack_copy(packing, others);
        }
        pack_cut_release(&packing->cut);
        close(packing->trace_fd);
        unlink(path);
    }
    if (packing->cut_fd >= 0)
        close(packing->cut_fd);
    free(cut_path);
    free(path);
    whole = whole && (packing->copies.members == NULL || packing->copies.all_whole);
    pack_copies_release(&packing->copies);
    return status == CMD_DONE && !whole ? CMD_FAILED : status;
}

/* A trace's file name as a token that is one. NULL without memory. */
static char *hidden_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    size_t room = strlen(name) + VS_PRIVATE_PATH_MORE;
    char *token = malloc(room), *whole = NULL;
    if (token == NULL)
        return NULL;
    vs_private_path(name, token, room);
    size_t length = strlen(token), suffix = sizeof(VS_TRACE_SUFFIX) - 1;
    bool has = length > suffix && strcmp(token + length - suffix, VS_TRACE_SUFFIX) == 0;
    if (asprintf(&whole, "%s%s", token, has ? "" : VS_TRACE_SUFFIX) < 0)
        whole = NULL;
    free(token);
    return whole;
}

/* File names of traces often hold the host's name. */
static bool hide_names(const struct report_other *items, size_t count, struct report_others *others)
{
    *others = (struct report_others){.items = calloc(count + 1, sizeof(*items)), .count = count};
    for (size_t i = 0; i < count && others->items != NULL; i++) {
        others->items[i] = items[i];
        others->items[i].path = hidden_name(items[i].path);
        if (others->items[i].path == NULL)
            return false;
    }
    return others->items != NULL;
}

/* Whether the archive leaves every trace of the folder alone. */
static bool spares_folder(const struct packing *packing, const struct report_folder *folder)
{
    for (size_t i = 0; i < folder->path_count; i++)
        if (!output_spares(packing->out, folder->paths[i]))
            return false;
    return true;
}

static int pack_folder(const char *path, struct packing *packing)
{
    struct report_folder folder;
    struct report_others others = {0};
    int status = CMD_FAILED;
    if (report_open_folder(path, &folder) && spares_folder(packing, &folder)) {
        packing->others = folder.traces.items + 1;
        packing->named = &others;
        bool hidden = hide_names(folder.traces.items + 1, folder.traces.count - 1, &others);
        others.chosen = folder.traces.chosen;
        others.as_urgent = folder.traces.as_urgent;
        if (hidden)
            status = pack_trace(folder.traces.items[0].path, packing, &others);
        if (!folder.all_read)
            status = CMD_FAILED;
        for (size_t i = 0; others.items != NULL && i < others.count; i++)
            free((char *)(uintptr_t)others.items[i].path);
        free(others.items);
    }
    report_release_folder(&folder);
    return status;
}

int cmd_pack(int argc, char **argv)
{
    struct packing packing = {
        .out = DEFAULT_OUT, .limit_bytes = LIMIT_BYTES, .trace_fd = -1, .cut_fd = -1};
    const char *path, *limit = NULL, *from = NULL, *to = NULL;
    struct vs_window *window = &packing.window;
    struct stat found;
    const struct option_rule options[] = {
        {"-o OUT", NULL, &packing.out},    {"--yes", &packing.yes, NULL},
        {"--force", &packing.force, NULL}, {"--limit SIZE", NULL, &limit},
        {"--from TIME", NULL, &from},      {"--to TIME", NULL, &to},
        {"--all", &packing.all, NULL}};
    int status =
        parse_arguments(argc, argv, help, options, sizeof(options) / sizeof(options[0]), &path);
    if (status >= 0)
        return status;
    if (strcmp(packing.out, "-") == 0) {
        fputs("vramscope pack: -o needs the name of a file: an archive does not go to stdout\n",
              stderr);
        return CMD_USAGE;
    }
    if (limit != NULL && !size_of_text(limit, &packing.limit_bytes)) {
        fprintf(stderr, "vramscope pack: --limit takes a size such as 25M, not '%s'\n", limit);
        return CMD_USAGE;
    }
    if (!take_bound("pack", "--from", from, &window->has_from, &window->from_ns) ||
        !take_bound("pack", "--to", to, &window->has_to, &window->to_ns))
        return CMD_USAGE;
    if (!output_spares(packing.out, path) || !output_check(packing.out, packing.force))
        return CMD_FAILED;
    bool folder = stat(path, &found) == 0 && S_ISDIR(found.st_mode);
    status = folder ? pack_folder(path, &packing) : pack_trace(path, &packing, NULL);
    return finish_output(status);
}
