# What every target of this repository is compiled with.

# kiln_target_flags(<target>): language level, warnings, hardening, sanitizers.
function(kiln_target_flags target)
  set_target_properties(${target} PROPERTIES
    CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF)
  target_compile_options(${target} PRIVATE -Wall -Wextra)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Both misfire in GCC 12: on the unused tail of a Shape, and on std::string operator+ (GCC bug 105651).
    target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized -Wno-restrict)
  endif()
  if(KILN_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(KILN_HARDEN AND NOT KILN_SANITIZE)
    # Ubuntu's compilers define _FORTIFY_SOURCE by themselves. See kiln_read_strangers for the stack.
    target_compile_options(${target} PRIVATE -fstack-protector
      "$<$<CONFIG:Release>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=3>")
    get_target_property(type ${target} TYPE)
    if(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND NOT type MATCHES "STATIC|OBJECT")
      target_link_options(${target} PRIVATE -Wl,-z,relro,-z,now)
    endif()
  endif()
  foreach(sanitizer IN LISTS KILN_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${sanitizer} -fno-omit-frame-pointer)
    target_link_options(${target} PRIVATE -fsanitize=${sanitizer})
    if(sanitizer STREQUAL "undefined")
      target_compile_options(${target} PRIVATE -fno-sanitize-recover=undefined)
    endif()
  endforeach()
  # GCC's flow warnings see ghosts in what the sanitizers insert.
  if(KILN_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE
      -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-array-bounds -Wno-nonnull
      -Wno-restrict -Wno-tsan)
  endif()
endfunction()

# kiln_read_strangers(<source>...): guards the stack of every function with an array or an address of
# a local in these sources, which read what strangers wrote. Everywhere it would make an operation
# on a small tensor 2.5 % slower (59.4 ns for 57.9); guards of arrays of bytes cost it nothing.
function(kiln_read_strangers)
  if(KILN_HARDEN AND NOT KILN_SANITIZE)
    set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_OPTIONS -fstack-protector-strong)
  endif()
endfunction()

# kiln_limit_highway_targets(<target>): compiles each Highway kernel for the baseline, AVX2 and
# AVX-512 only, on ARM for NEON. The instruction sets between them cost compile time on every kernel
# and serve machines nobody trains on; kernels keep vectors and masks in structs, where SVE's have no
# place. Only names that this Highway knows may stand in the macro. With KILN_NATIVE, for the best of them
# that this machine has, and for no other.
function(kiln_limit_highway_targets target)
  get_target_property(include_dirs hwy::hwy INTERFACE_INCLUDE_DIRECTORIES)
  find_file(KILN_HIGHWAY_TARGETS_HEADER hwy/detect_targets.h HINTS ${include_dirs})
  mark_as_advanced(KILN_HIGHWAY_TARGETS_HEADER)
  if(NOT KILN_HIGHWAY_TARGETS_HEADER)
    return()
  endif()
  file(READ "${KILN_HIGHWAY_TARGETS_HEADER}" header)
  set(disabled "")
  set(names HWY_SSSE3 HWY_SSE4 HWY_AVX3_DL HWY_AVX3_ZEN4 HWY_AVX3_SPR HWY_AVX10_2 HWY_AVX10_2_512)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
    list(APPEND names HWY_SVE HWY_SVE2 HWY_SVE_256 HWY_SVE2_128)
  endif()
  if("thread" IN_LIST KILN_SANITIZE)
    # Races do not depend on the instruction set: the baseline alone, for a third of the time.
    list(APPEND names HWY_AVX2 HWY_AVX3)
  elseif("address" IN_LIST KILN_SANITIZE)
    # The shortest and the longest vectors; results at each length are the release build's to test.
    list(APPEND names HWY_AVX2)
  endif()
  foreach(name IN LISTS names)
    if(header MATCHES "#define ${name} ")
      list(APPEND disabled ${name})
    endif()
  endforeach()
  if(KILN_NATIVE)
    if(CMAKE_CROSSCOMPILING)
      message(FATAL_ERROR "KILN_NATIVE=ON compiles for this machine's processor, not for another")
    endif()
    target_compile_options(${target} PRIVATE -march=native)
    target_compile_definitions(${target} PRIVATE HWY_COMPILE_ONLY_STATIC)
  endif()
  list(JOIN disabled "|" disabled)
  target_compile_definitions(${target} PRIVATE "HWY_DISABLED_TARGETS=(${disabled})")
endfunction()
