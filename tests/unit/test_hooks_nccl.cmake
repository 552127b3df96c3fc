# SPDX-License-Identifier: Apache-2.0
include("${CMAKE_CURRENT_LIST_DIR}/hook_lab.cmake")
if(NOT TARGET hook_fake_nccl1)
  foreach(copy IN ITEMS 1 2)
    add_library(hook_fake_nccl${copy} SHARED "${CMAKE_CURRENT_LIST_DIR}/fakes/fake_nccl.c")
    target_link_libraries(hook_fake_nccl${copy} PRIVATE vs_warnings)
    set_target_properties(hook_fake_nccl${copy} PROPERTIES LIBRARY_OUTPUT_DIRECTORY
                                                           "${CMAKE_BINARY_DIR}/fakes")
  endforeach()
endif()
list(APPEND VS_UNIT_DEPENDS hook_fake_nccl1 hook_fake_nccl2)
set_source_files_properties(
  test_hooks_nccl.c
  PROPERTIES COMPILE_DEFINITIONS
             "FAKE_NCCL_1=\"$<TARGET_FILE:hook_fake_nccl1>\";FAKE_NCCL_2=\"$<TARGET_FILE:hook_fake_nccl2>\"")
