/* SPDX-License-Identifier: Apache-2.0 */
/* The exports, one function and one file each. They return 0 or a negative errno value. */
#ifndef VS_EXPORT_FORMATS_H
#define VS_EXPORT_FORMATS_H

#include "export.h"

int vs_export_csv(struct vs_export *export);
int vs_export_folded(struct vs_export *export);
int vs_export_html(struct vs_export *export);
int vs_export_json(struct vs_export *export);
int vs_export_perfetto(struct vs_export *export);
int vs_export_pprof(struct vs_export *export);
int vs_export_pytorch(struct vs_export *export);
int vs_export_sqlite(struct vs_export *export);

#endif
