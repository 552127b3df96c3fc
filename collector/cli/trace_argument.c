/* SPDX-License-Identifier: Apache-2.0 */
/* Input of the commands that read a trace. */
#include "trace_argument.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"

struct vs_summary *load_trace(const char *path, vs_timeline_row *row, void *row_self)
{
    struct vs_summary *summary = NULL;
    struct vs_error error = {{0}};
    if (vs_summary_load(path, row, row_self, &summary, &error) == 0)
        return summary;
    fprintf(stderr, "vramscope: %s\n", error.text);
    return NULL;
}

bool tell_damage(const char *path, const struct vs_trace_status *status, int read_error)
{
    bool truncated = status->truncated;
    bool damaged = status->damaged_chunks != 0 || status->damaged_bytes != 0;
    if (!truncated && !damaged && read_error == 0)
        return false;
    fprintf(stderr, "vramscope: %s: %s: %" PRIu64 " events could be read, the rest is missing\n",
            path,
            read_error != 0 ? strerror(-read_error)
            : damaged       ? "damaged"
                            : "cut off",
            status->events);
    return true;
}

int finish_output(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    if (errno != EPIPE)
        fprintf(stderr, "vramscope: could not write the output: %s\n", strerror(errno));
    clearerr(stdout); /* said once */
    return CMD_FAILED;
}
