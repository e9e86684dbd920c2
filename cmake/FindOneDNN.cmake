# Finds oneDNN by its header and library and defines OneDNN::OneDNN.
#
# oneDNN's own package file is not used: Debian's asks every user for the OpenCL development files,
# which nothing here needs.

find_path(OneDNN_INCLUDE_DIR NAMES oneapi/dnnl/dnnl.hpp)
find_library(OneDNN_LIBRARY NAMES dnnl)
mark_as_advanced(OneDNN_INCLUDE_DIR OneDNN_LIBRARY)

set(OneDNN_VERSION "")
if(OneDNN_INCLUDE_DIR AND EXISTS "${OneDNN_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h")
  file(READ "${OneDNN_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h" onednn_version_text)
  foreach(part MAJOR MINOR PATCH)
    if(onednn_version_text MATCHES "#define DNNL_VERSION_${part} +([0-9]+)")
      list(APPEND OneDNN_VERSION ${CMAKE_MATCH_1})
    endif()
  endforeach()
  list(JOIN OneDNN_VERSION "." OneDNN_VERSION)
  unset(onednn_version_text)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OneDNN
  REQUIRED_VARS OneDNN_LIBRARY OneDNN_INCLUDE_DIR
  VERSION_VAR OneDNN_VERSION)

if(OneDNN_FOUND AND NOT TARGET OneDNN::OneDNN)
  add_library(OneDNN::OneDNN UNKNOWN IMPORTED)
  set_target_properties(OneDNN::OneDNN PROPERTIES
    IMPORTED_LOCATION "${OneDNN_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${OneDNN_INCLUDE_DIR}")
endif()
