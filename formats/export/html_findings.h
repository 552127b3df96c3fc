/* SPDX-License-Identifier: Apache-2.0 */
/* What a page tells besides its curve: failures, growth, phases. */
#ifndef VS_EXPORT_HTML_FINDINGS_H
#define VS_EXPORT_HTML_FINDINGS_H

#include "html_values.h"

/* Members of the page's data. */
void vs_html_write_findings(struct vs_html_data *data);
void vs_html_write_phases(struct vs_html_data *data);

#endif
