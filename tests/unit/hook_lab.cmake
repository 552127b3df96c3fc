# SPDX-License-Identifier: Apache-2.0
# The hooks' own sources inside the test, the rest of the shim as hook_lab.c has it, and a fake
# driver with two fake runtimes and a library linked against each.
set(shim "${PROJECT_SOURCE_DIR}/shim")
set(hook_generated "${CMAKE_BINARY_DIR}/generated/shim")

if(NOT TARGET hook_lab)
  set(fakes "${CMAKE_CURRENT_LIST_DIR}/fakes")
  set(fake_directory "${CMAKE_BINARY_DIR}/fakes")

  add_library(hook_fake_cuda SHARED "${fakes}/fake_cuda.c")
  target_link_libraries(hook_fake_cuda PRIVATE vs_warnings)
  target_compile_definitions(hook_fake_cuda PRIVATE FAKE_CUDA_NAME="libfakecuda.so.1")
  set_target_properties(hook_fake_cuda PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${fake_directory}"
                                                  OUTPUT_NAME fakecuda SOVERSION 1 VERSION 1)
  foreach(major IN ITEMS 12 13)
    set(version_script "${fake_directory}/cudart${major}.map")
    file(WRITE "${version_script}" "libcudart.so.${major} { global: *; };\n")
    add_library(hook_fake_cudart${major} SHARED "${fakes}/fake_cudart.c")
    target_link_libraries(hook_fake_cudart${major} PRIVATE vs_warnings)
    target_compile_definitions(hook_fake_cudart${major} PRIVATE FAKE_TAG=${major})
    target_link_options(hook_fake_cudart${major} PRIVATE
                        "-Wl,--version-script=${version_script}")
    set_target_properties(
      hook_fake_cudart${major}
      PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${fake_directory}/${major}" OUTPUT_NAME cudart
                 SOVERSION ${major} VERSION ${major})
    add_library(hook_fake_plugin${major} SHARED "${fakes}/fake_plugin.c")
    target_link_libraries(hook_fake_plugin${major} PRIVATE vs_warnings hook_fake_cudart${major})
    set_target_properties(hook_fake_plugin${major}
                          PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${fake_directory}")
  endforeach()

  # Sanitizers see the hooks as the test's own code.
  set(lab_sources hook_lab.c ${shim}/thread_state.c ${shim}/modules.c ${shim}/real_dl.c)
  foreach(source IN ITEMS cuda_abi devices elf_object event_clock hook hook_dlsym hook_driver hook_framework
                          hook_names hook_nccl hook_oneflow hook_runtime hook_torch real_table
                          torch_peak)
    list(APPEND lab_sources "${shim}/${source}.c")
  endforeach()
  # A sanitizer's own start looks functions up with dlsym, before its shadow memory exists.
  set_source_files_properties(
    ${shim}/elf_object.c ${shim}/hook_dlsym.c ${shim}/hook_names.c ${shim}/real_dl.c
    PROPERTIES COMPILE_OPTIONS -fno-sanitize=all)
  add_library(hook_lab OBJECT ${lab_sources} "${hook_generated}/hook_table.c")
  target_include_directories(hook_lab PUBLIC "${shim}" "${hook_generated}"
                                             "${VS_CRITERION_INCLUDE}")
  target_compile_definitions(
    hook_lab
    PUBLIC FAKE_CUDA_PATH="${fake_directory}/libfakecuda.so.1"
           FAKE_CUDART_12="${fake_directory}/12/libcudart.so.12"
           FAKE_CUDART_13="${fake_directory}/13/libcudart.so.13"
           FAKE_PLUGIN_12="$<TARGET_FILE:hook_fake_plugin12>"
           FAKE_PLUGIN_13="$<TARGET_FILE:hook_fake_plugin13>")
  target_link_libraries(hook_lab PUBLIC vs_warnings vs_sanitize)
  target_compile_options(hook_lab PUBLIC -fvisibility=hidden)
  add_dependencies(hook_lab vs_hooks_generated)
endif()

set_source_files_properties("${hook_generated}/hook_table.c" PROPERTIES GENERATED ON)
set(VS_UNIT_SOURCES "")
set(VS_UNIT_LIBRARIES hook_lab ${CMAKE_DL_LIBS} -rdynamic)
set(VS_UNIT_DEPENDS hook_fake_cuda hook_fake_plugin12 hook_fake_plugin13)
