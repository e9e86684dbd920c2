# zlib and the formats of images: libraries that are there or not. Without one, its files are a typed
# error that names the option.
#
# Sets kiln_image_libraries and kiln_image_definitions(), which tells the sources.

set(kiln_image_libraries "")
if(KILN_ZLIB)
  find_package(ZLIB REQUIRED)
  list(APPEND kiln_image_libraries ZLIB::ZLIB)
endif()
if(KILN_PNG)
  find_package(PNG REQUIRED)
  list(APPEND kiln_image_libraries PNG::PNG)
endif()
set(kiln_has_jpeg OFF)
set(kiln_has_webp OFF)

if(KILN_JPEG)
  find_package(JPEG)
  if(JPEG_FOUND)
    set(kiln_has_jpeg ON)
    list(APPEND kiln_image_libraries JPEG::JPEG)
  else()
    message(WARNING "No libjpeg: Kiln is built without JPEG (Debian: libjpeg-dev; or -DKILN_JPEG=OFF)")
  endif()
endif()

if(KILN_WEBP)
  find_path(WebP_INCLUDE_DIR webp/decode.h)
  find_library(WebP_LIBRARY webp)
  mark_as_advanced(WebP_INCLUDE_DIR WebP_LIBRARY)
  if(WebP_INCLUDE_DIR AND WebP_LIBRARY)
    set(kiln_has_webp ON)
    # By its path: what links a static Kiln needs no find module of ours.
    list(APPEND kiln_image_libraries "${WebP_LIBRARY}")
  else()
    message(WARNING "No libwebp: Kiln is built without WebP (Debian: libwebp-dev; or -DKILN_WEBP=OFF)")
  endif()
endif()

# Definitions of these sources alone, so that nothing else is compiled anew.
function(kiln_image_definitions)
  set(folder "${PROJECT_SOURCE_DIR}/kiln/io")
  if(KILN_ZLIB)
    set_property(SOURCE "${folder}/crc32.cpp" "${folder}/gzip.cpp" "${folder}/zip_stream.cpp"
      "${folder}/zip_writer.cpp" APPEND PROPERTY COMPILE_DEFINITIONS KILN_HAS_ZLIB)
  endif()
  if(KILN_PNG)
    set_property(SOURCE "${folder}/image.cpp" "${folder}/image_png.cpp"
      APPEND PROPERTY COMPILE_DEFINITIONS KILN_HAS_PNG)
  endif()
  foreach(format IN ITEMS jpeg webp)
    if(kiln_has_${format})
      string(TOUPPER "KILN_HAS_${format}" definition)
      set_property(SOURCE "${folder}/image.cpp" "${folder}/image_${format}.cpp"
        APPEND PROPERTY COMPILE_DEFINITIONS ${definition})
    endif()
  endforeach()
  # GCC loses its own headers where the system's folder is named.
  if(kiln_has_webp AND NOT WebP_INCLUDE_DIR IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
    set_property(SOURCE "${folder}/image_webp.cpp" 
      APPEND PROPERTY INCLUDE_DIRECTORIES "${WebP_INCLUDE_DIR}")
  endif()
endfunction()
