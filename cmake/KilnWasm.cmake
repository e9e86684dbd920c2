# Kiln for WebAssembly, by Emscripten: what of the distribution's packages has headers alone, and the
# compiler's flags. There are no libraries beside libkiln.

set(kiln_wasm_flags "")
set(kiln_position_independent ON)
if(NOT EMSCRIPTEN)
  return()
endif()

set(kiln_position_independent OFF)  # it would be for modules that load one another
option(KILN_WASM_THREADS "Compile for shared memory and threads, which pages must be isolated for" OFF)

# Vectors, and exceptions as the machine has them. Every object must have the same.
set(kiln_wasm_flags -msimd128 -fwasm-exceptions)
if(KILN_WASM_THREADS)
  list(APPEND kiln_wasm_flags -pthread)
endif()

# A folder for each library: /usr/include itself has the headers of this machine's C library.
function(kiln_wasm_headers target folder header)
  find_path(KILN_${folder}_HEADERS "${folder}/${header}" NO_CMAKE_FIND_ROOT_PATH
    HINTS /usr/include /usr/local/include)
  if(NOT KILN_${folder}_HEADERS)
    message(FATAL_ERROR "No ${folder}/${header}: set KILN_${folder}_HEADERS to the folder above it")
  endif()
  set(place "${CMAKE_BINARY_DIR}/headers/${folder}")
  file(MAKE_DIRECTORY "${place}")
  file(CREATE_LINK "${KILN_${folder}_HEADERS}/${folder}" "${place}/${folder}" SYMBOLIC)
  add_library(${target} INTERFACE IMPORTED GLOBAL)
  target_include_directories(${target} SYSTEM INTERFACE "${place}")
endfunction()

kiln_wasm_headers(hwy::hwy hwy highway.h)
kiln_wasm_headers(nlohmann_json::nlohmann_json nlohmann json.hpp)
