/* SPDX-License-Identifier: Apache-2.0 */
/* What the start of the collector needs to know of the configuration, beyond shim.h. */
#ifndef VS_SHIM_CONFIG_H
#define VS_SHIM_CONFIG_H

#include "shim.h"

/* True when this "NAME=value" is a VRAMSCOPE_ variable whose value was refused. */
bool config_refused(const char *assignment);
/* Fills shim_config.collector from the place of this library. Needs modules_refresh() before it. */
void config_find_collector(void);

#endif
