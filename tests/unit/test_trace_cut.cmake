# SPDX-License-Identifier: Apache-2.0
set(VS_UNIT_LIBRARIES vs_trace_shapes)
