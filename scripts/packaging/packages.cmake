# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` adds to the programs, and the .deb and .tar.gz that cpack makes
# of it; scripts/package drives them. Everything finds its parts relative to itself, so a prefix
# can be moved.
install(FILES "${PROJECT_SOURCE_DIR}/README.md" "${PROJECT_SOURCE_DIR}/LICENSE"
        DESTINATION share/doc/vramscope)

# The licences of what is linked in, as the system that builds has them.
if(VS_STATIC_LIBRARIES)
  set(linked libzstd-dev libxxhash-dev libjansson-dev)
  if(TARGET vramscope-symbolizer)
    list(APPEND linked libdw-dev libelf-dev libiberty-dev liblzma-dev libbz2-dev zlib1g-dev)
  endif()
  foreach(package IN LISTS linked)
    if(NOT EXISTS "/usr/share/doc/${package}/copyright")
      message(FATAL_ERROR "the licence of ${package} is not in /usr/share/doc: it has to go along")
    endif()
    install(FILES "/usr/share/doc/${package}/copyright" DESTINATION share/doc/vramscope/linked
            RENAME "${package}.copyright")
  endforeach()
endif()

# The oldest glibc that will do; scripts/package finds it in the programs' symbol versions.
set(VS_PACKAGE_GLIBC "" CACHE STRING "Oldest glibc version the packages depend on")

set(CPACK_GENERATOR "DEB;TGZ")
set(CPACK_PACKAGE_NAME vramscope)
set(CPACK_PACKAGE_VERSION "${PROJECT_VERSION}")
set(CPACK_PACKAGE_CONTACT "the vramscope project")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Where did the GPU memory go? A profiler of CUDA device memory")
set(CPACK_PACKAGE_DESCRIPTION
    "Records every device-memory event of an unmodified CUDA program, with the line\n of Python and the native stack it came from, and rebuilds from one small file\n what was allocated, reserved and used at any instant.")
set(CPACK_PACKAGE_FILE_NAME
    "vramscope-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR}")
string(TOLOWER "${CPACK_PACKAGE_FILE_NAME}" CPACK_PACKAGE_FILE_NAME)
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
if(VS_PACKAGE_GLIBC)
  set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= ${VS_PACKAGE_GLIBC})")
endif()
include(CPack)
