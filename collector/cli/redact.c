/* SPDX-License-Identifier: Apache-2.0 */
/* vramscope redact: a copy of a trace that can be shown to strangers. */
#include "redact.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "commands.h"
#include "output_file.h"
#include "redact_trace.h"
#include "trace_argument.h"

static const char help[] =
    "usage: vramscope redact -o OUT [--force] TRACE\n"
    "\n"
    "Writes a copy of a trace without what says whose it is: host and users, paths outside of\n"
    "installed packages, process titles, links, mail addresses, and settings that hold paths\n"
    "become tokens such as h-0123456789abcdef. The same text becomes the same token, in every\n"
    "trace. Numbers, events, stacks, names of functions and of threads stay: a report says the\n"
    "same of both. What is left in it is listed by `vramscope report --what-is-inside`.\n"
    "\n"
    "  -o OUT    the copy\n"
    "  --force   writes over OUT\n"
    "\n"
    "Exit status: 0 done, 1 the trace could not be read, or not all of it, 2 usage.\n";

/* What the reader sees and a copy of the file does not hold: a ring left over beside it. */
static uint64_t events_beside(const char *path)
{
    struct vs_reader *reader = NULL;
    struct vs_error error;
    if (vs_reader_open(path, &reader, &error) != 0)
        return 0;
    uint64_t events = vs_reader_status(reader)->ring_events;
    vs_reader_close(reader);
    return events;
}

bool redact_trace(const char *path, const char *to, int fd, struct vs_redacted *redacted,
                  bool *whole)
{
    struct vs_error error = {{0}};
    struct vs_trace_status status = {0};
    int result = vs_redact(path, fd, redacted, &status, &error);
    if (result == -ENOSPC || result == -EDQUOT || result == -EFBIG)
        output_complain(to, -result); /* no fault of the original */
    else if (result != 0)
        fprintf(stderr, "vramscope: %s\n", error.text);
    if (result != 0)
        return false;
    *whole = !tell_damage(path, &status, 0);
    uint64_t beside = status.closed || !*whole ? 0 : events_beside(path);
    if (beside != 0) {
        *whole = false;
        fprintf(stderr,
                "vramscope: %s: %" PRIu64
                " events are only in the ring beside it, and not copied\n",
                path, beside);
    }
    return true;
}

static void say_what(FILE *out, const char *path, const struct vs_redacted *redacted)
{
    fprintf(out,
            "%s: hidden: %" PRIu64 " paths, %" PRIu64 " hosts and users, %" PRIu64
            " process titles, %" PRIu64 " thread names, %" PRIu64 " settings; %" PRIu64 " bytes\n",
            path, redacted->paths, redacted->names, redacted->titles, redacted->threads,
            redacted->settings, redacted->bytes);
}

int cmd_redact(int argc, char **argv)
{
    const char *path, *out = NULL;
    bool force = false, whole = true;
    const struct option_rule rules[] = {{"-o OUT", NULL, &out}, {"--force", &force, NULL}};
    int status = parse_arguments(argc, argv, help, rules, sizeof(rules) / sizeof(rules[0]), &path);
    if (status >= 0)
        return status;
    if (out == NULL) {
        fputs("vramscope redact: -o OUT is missing: where the copy goes; `vramscope redact --help` "
              "says how\n",
              stderr);
        return CMD_USAGE;
    }
    struct output_file output;
    struct vs_redacted redacted;
    if (!output_spares(out, path) || !output_open(&output, out, force, true))
        return CMD_FAILED;
    bool kept = redact_trace(path, out, output.fd, &redacted, &whole) && output_keep(&output);
    output_discard(&output);
    if (!kept)
        return CMD_FAILED;
    say_what(output.to_stdout ? stderr : stdout, output.to_stdout ? "stdout" : out, &redacted);
    return finish_output(whole ? CMD_DONE : CMD_FAILED);
}
