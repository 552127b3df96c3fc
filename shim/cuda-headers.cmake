# SPDX-License-Identifier: Apache-2.0
# CUDA's headers, for the coverage check and the tests (the shim itself is built
# without any): VS_CUDA_INCLUDE when given, else an installed toolkit, else the
# PyPI packages that carry them. Sets VS_CUDA_HEADERS; target vs_cuda_headers.
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)

function(vs_find_cuda_headers result)
  if(VS_CUDA_INCLUDE)
    set(folder "${VS_CUDA_INCLUDE}")
    if(NOT EXISTS "${folder}/cuda_runtime_api.h")
      message(FATAL_ERROR "VS_CUDA_INCLUDE is '${folder}': no cuda_runtime_api.h in it")
    endif()
    set(origin "VS_CUDA_INCLUDE")
  else()
    find_path(folder cuda_runtime_api.h
              HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES include
              NO_CACHE)
    set(origin "installed toolkit")
  endif()
  if(NOT folder OR NOT EXISTS "${folder}/cuda.h")
    execute_process(
      COMMAND "${Python3_EXECUTABLE}" "${CMAKE_SOURCE_DIR}/scripts/cuda-headers"
              "${CMAKE_BINARY_DIR}/cuda-headers"
      OUTPUT_VARIABLE folder OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
    set(origin "PyPI packages, see packages.txt there")
    if(failed)
      message(FATAL_ERROR "no CUDA headers: install a CUDA toolkit, or python3-venv and a network")
    endif()
  endif()
  message(STATUS "CUDA headers: ${folder} (${origin})")
  set(${result} "${folder}" PARENT_SCOPE)
endfunction()

vs_find_cuda_headers(VS_CUDA_HEADERS)
add_library(vs_cuda_headers INTERFACE)
target_include_directories(vs_cuda_headers SYSTEM INTERFACE "${VS_CUDA_HEADERS}")
