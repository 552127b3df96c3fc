# SPDX-License-Identifier: Apache-2.0
# The hook table: its documentation, the headers, every entry point called.
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
set(source "${PROJECT_SOURCE_DIR}")

add_test(NAME hooks.documentation
         COMMAND "${source}/scripts/gen-hooks" "${source}/shim/hooks.def" --check
                 "${source}/docs/hooks.md")
add_test(NAME hooks.headers COMMAND "${source}/scripts/check-hooks" "${source}/shim/hooks.def"
                                    --compiler "${CMAKE_C_COMPILER}" "${VS_CUDA_HEADERS}")
add_test(NAME hooks.headers-notice
         COMMAND "${Python3_EXECUTABLE}" "${CMAKE_CURRENT_LIST_DIR}/test_check_hooks.py"
                 "${source}" "${CMAKE_C_COMPILER}" "${VS_CUDA_HEADERS}")

add_executable(all_calls all_calls.c)
target_link_libraries(all_calls PRIVATE vs_warnings ${CMAKE_DL_LIBS})
set_target_properties(all_calls PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/torture")
add_test(NAME hooks.all-calls
         COMMAND "${Python3_EXECUTABLE}" "${CMAKE_CURRENT_LIST_DIR}/test_all_calls.py"
                 "${CMAKE_BINARY_DIR}" "${source}")
set_tests_properties(hooks.documentation hooks.headers hooks.headers-notice hooks.all-calls
                     PROPERTIES LABELS hooks)

foreach(sanitizer IN ITEMS address thread undefined)
  add_executable(sanitized-${sanitizer} sanitized.c)
  target_compile_options(sanitized-${sanitizer} PRIVATE -fsanitize=${sanitizer})
  target_link_options(sanitized-${sanitizer} PRIVATE -fsanitize=${sanitizer})
  target_link_libraries(sanitized-${sanitizer} PRIVATE vs_warnings ${CMAKE_DL_LIBS})
  set_target_properties(sanitized-${sanitizer} PROPERTIES RUNTIME_OUTPUT_DIRECTORY
                                                          "${CMAKE_BINARY_DIR}/torture")
  add_test(NAME hooks.sanitized-${sanitizer} COMMAND sanitized-${sanitizer})
  set_tests_properties(
    hooks.sanitized-${sanitizer}
    PROPERTIES ENVIRONMENT
               "LD_PRELOAD=$<TARGET_FILE:vramscope_shim>;ASAN_OPTIONS=verify_asan_link_order=0"
               LABELS hooks)
endforeach()
