/* SPDX-License-Identifier: Apache-2.0 */
/* The table of exports, sorted by name. */
#include "formats.h"

const struct vs_export_format vs_export_formats[] = {
    {"csv", ".csv", vs_export_csv, false},
    {"folded", ".folded", vs_export_folded, false},
    {"html", ".html", vs_export_html, false},
    {"json", ".jsonl", vs_export_json, false},
    {"perfetto", ".perfetto-trace", vs_export_perfetto, false},
    {"pprof", ".pb.gz", vs_export_pprof, false},
    {"pytorch", ".pickle", vs_export_pytorch, false},
    {"sqlite", ".sqlite", vs_export_sqlite, true},
    {NULL, NULL, NULL, false},
};
