/* SPDX-License-Identifier: Apache-2.0 */
/* The table of exports, sorted by name. */
#include "formats.h"

const struct vs_export_format vs_export_formats[] = {
    {"csv", ".csv", vs_export_csv, false, false, false},
    {"folded", ".folded", vs_export_folded, false, true, true},
    {"html", ".html", vs_export_html, false, true, false},
    {"json", ".jsonl", vs_export_json, false, false, false},
    {"perfetto", ".perfetto-trace", vs_export_perfetto, false, true, false},
    {"pprof", ".pb.gz", vs_export_pprof, false, true, true},
    {"pytorch", ".pickle", vs_export_pytorch, false, true, false},
    {"sqlite", ".sqlite", vs_export_sqlite, true, false, false},
    {NULL, NULL, NULL, false, false, false},
};
