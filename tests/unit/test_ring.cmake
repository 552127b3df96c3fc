# SPDX-License-Identifier: Apache-2.0
# The shim's own sources with test points, against the strict consumer; the life cycle is the test's.
set(VS_UNIT_SOURCES "${PROJECT_SOURCE_DIR}/shim/ring_producer.c" "${PROJECT_SOURCE_DIR}/shim/event_clock.c" "${PROJECT_SOURCE_DIR}/shim/thread_state.c"
                    "${PROJECT_SOURCE_DIR}/tests/torture/consumer.c")
set(VS_UNIT_LIBRARIES "")
set_source_files_properties(${VS_UNIT_SOURCES} test_ring.c PROPERTIES COMPILE_DEFINITIONS VS_TEST_POINTS)
