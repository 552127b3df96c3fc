# SPDX-License-Identifier: Apache-2.0
# It has the clock of events within itself.
set(VS_UNIT_SOURCES "")
set(VS_UNIT_LIBRARIES "")
