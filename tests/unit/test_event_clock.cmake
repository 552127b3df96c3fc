# SPDX-License-Identifier: Apache-2.0
# The clock of events alone: the clock that it reads is the test's.
set(VS_UNIT_SOURCES "${PROJECT_SOURCE_DIR}/shim/event_clock.c")
set(VS_UNIT_LIBRARIES "")
