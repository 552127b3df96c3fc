/* SPDX-License-Identifier: Apache-2.0 */
/* vramscope verify: is the trace whole, and do its figures hold together? */
#include <stdio.h>
#include <stdlib.h>

#include "commands.h"
#include "trace_argument.h"

static const char help[] =
    "usage: vramscope verify [--json] TRACE\n"
    "\n"
    "Checks the file (checksums, sequence) and what is in it: frees match\n"
    "allocations, the framework's own totals equal ours at every event, blocks lie\n"
    "inside segments, the bands keep their identities, the sites sum up to the peak.\n"
    "Prints each check with its counts: ok, note (incomplete but accounted for), OFF.\n"
    "\n"
    "Exit status: 0 nothing is off, 1 something is, or the trace cannot be read.\n";

static const char *outcome_name(enum vs_check_outcome outcome)
{
    return outcome == VS_CHECK_OK ? "ok" : outcome == VS_CHECK_NOTE ? "note" : "OFF";
}

static void print_text(const struct vs_check *checks, size_t count)
{
    for (size_t i = 0; i < count; i++)
        printf("%-5s %-20s %s\n", outcome_name(checks[i].outcome), checks[i].name, checks[i].text);
}

static void print_json(const char *path, const struct vs_check *checks, size_t count, bool off)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:s}", "name", checks[i].name, "outcome",
                                        outcome_name(checks[i].outcome), "text", checks[i].text));
    json_t *root = json_pack("{s:s, s:s, s:b, s:o}", "schema", "vramscope-verify/1", "file", path,
                             "ok", !off, "checks", list);
    json_dumpf(root, stdout, JSON_INDENT(1));
    putchar('\n');
    json_decref(root);
}

int cmd_verify(int argc, char **argv)
{
    bool json = false;
    const char *path;
    const struct option_rule rules[] = {{"--json", &json, NULL}};
    int status = parse_arguments(argc, argv, help, rules, 1, &path);
    if (status >= 0)
        return status;
    struct vs_summary *summary = load_trace(path, NULL, NULL);
    if (summary == NULL)
        return CMD_FAILED;
    struct vs_check checks[VS_CHECKS];
    size_t count = vs_checks_run(summary, checks), off = 0;
    for (size_t i = 0; i < count; i++)
        off += checks[i].outcome == VS_CHECK_OFF;
    if (json)
        print_json(path, checks, count, off != 0);
    else
        print_text(checks, count);
    if (off != 0)
        fprintf(stderr, "vramscope: %s: %zu of %zu checks are off\n", path, off, count);
    vs_summary_free(summary);
    return finish_output(off == 0 ? CMD_DONE : CMD_FAILED);
}
