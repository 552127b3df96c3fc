# SPDX-License-Identifier: Apache-2.0
# What is generated from hooks.def; included by shim/CMakeLists.txt:
#   VS_HOOK_SOURCES     of libvramscope.so     VS_HOOK_INCLUDE   folder of generated headers
#   vs_hook_list        library with the table as `doctor` prints it (hook_list.h)
#   vs_hooks_checked    the table against the CUDA headers at hand, with every build
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)

set(VS_HOOK_TABLE "${CMAKE_CURRENT_LIST_DIR}/hooks.def")
set(VS_HOOK_INCLUDE "${CMAKE_BINARY_DIR}/generated/shim")
set(VS_HOOK_GENERATOR "${CMAKE_SOURCE_DIR}/scripts/gen-hooks")
set(VS_HOOK_GENERATED
    "${VS_HOOK_INCLUDE}/hook_ids.h" "${VS_HOOK_INCLUDE}/hook_driver.inc"
    "${VS_HOOK_INCLUDE}/hook_runtime.inc" "${VS_HOOK_INCLUDE}/hook_table.c"
    "${VS_HOOK_INCLUDE}/hook_list.c" "${VS_HOOK_INCLUDE}/hook_names.txt")

add_custom_command(
  OUTPUT ${VS_HOOK_GENERATED}
  COMMAND "${Python3_EXECUTABLE}" "${VS_HOOK_GENERATOR}" "${VS_HOOK_TABLE}" --out
          "${VS_HOOK_INCLUDE}"
  COMMAND "${CMAKE_COMMAND}" -E touch ${VS_HOOK_GENERATED}
  DEPENDS "${VS_HOOK_TABLE}" "${VS_HOOK_GENERATOR}" "${CMAKE_SOURCE_DIR}/scripts/hook_table.py"
  COMMENT "Generating wrappers from hooks.def"
  VERBATIM)
add_custom_target(vs_hooks_generated DEPENDS ${VS_HOOK_GENERATED})

set(VS_HOOK_SOURCES ${VS_HOOK_GENERATED})
list(REMOVE_ITEM VS_HOOK_SOURCES "${VS_HOOK_INCLUDE}/hook_list.c"
     "${VS_HOOK_INCLUDE}/hook_names.txt")
foreach(source IN ITEMS cuda_abi devices elf_object hook hook_dlsym hook_driver hook_framework
                        hook_names hook_nccl hook_oneflow hook_runtime hook_torch real_table
                        torch_peak)
  list(APPEND VS_HOOK_SOURCES "${CMAKE_CURRENT_LIST_DIR}/${source}.c")
endforeach()

add_library(vs_hook_list STATIC "${VS_HOOK_INCLUDE}/hook_list.c")
target_include_directories(vs_hook_list PUBLIC "${CMAKE_CURRENT_LIST_DIR}")
target_link_libraries(vs_hook_list PRIVATE vs_warnings)
add_dependencies(vs_hook_list vs_hooks_generated)

# Every entry point of the CUDA headers at hand that allocates, frees or maps is in the table.
if(NOT VS_CUDA_HEADERS)
  return()
endif()
add_custom_command(
  OUTPUT "${CMAKE_BINARY_DIR}/generated/hooks-checked"
  COMMAND "${CMAKE_SOURCE_DIR}/scripts/check-hooks" "${VS_HOOK_TABLE}" --compiler
          "${CMAKE_C_COMPILER}" "${VS_CUDA_HEADERS}"
  COMMAND "${CMAKE_COMMAND}" -E touch "${CMAKE_BINARY_DIR}/generated/hooks-checked"
  DEPENDS "${VS_HOOK_TABLE}" "${CMAKE_SOURCE_DIR}/scripts/check-hooks"
          "${CMAKE_SOURCE_DIR}/scripts/hook_table.py"
  COMMENT "Checking hooks.def against the CUDA headers in ${VS_CUDA_HEADERS}"
  VERBATIM)
add_custom_target(vs_hooks_checked ALL DEPENDS "${CMAKE_BINARY_DIR}/generated/hooks-checked")
