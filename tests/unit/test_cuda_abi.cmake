# SPDX-License-Identifier: Apache-2.0
set(VS_UNIT_SOURCES "${PROJECT_SOURCE_DIR}/shim/cuda_abi.c")
set(VS_UNIT_LIBRARIES vs_cuda_headers)
