# Runs the recipe for vcpkg with stand-ins for vcpkg's own commands, which do what its documentation says of
# them. vcpkg itself fetches what it needs from GitHub.
#
#   cmake -DSOURCE_DIR=... -DWORK_DIR=... -DGENERATOR=... [-DBUILD=ON] -P vcpkg.cmake
#
# It configures with every feature and with none, and fails where Kiln does not know an option of the recipe or
# the recipe's version is another. With BUILD it builds and installs, too, and builds tests/consumer with that.

cmake_policy(SET CMP0057 NEW)  # IN_LIST
set(CURRENT_PORT_DIR "${SOURCE_DIR}/packaging/vcpkg/kiln")
set(PORT kiln)
if(NOT VCPKG_LIBRARY_LINKAGE)
  set(VCPKG_LIBRARY_LINKAGE static)  # vcpkg's default for Linux
endif()

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "vcpkg: failed (${result}): ${command}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

function(vcpkg_check_features)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" OUT_FEATURE_OPTIONS FEATURES)
  set(options "")
  while(arg_FEATURES)
    list(POP_FRONT arg_FEATURES feature option)
    if(NOT feature IN_LIST known_features)
      message(FATAL_ERROR "vcpkg: vcpkg.json has no feature '${feature}'")
    endif()
    if(feature IN_LIST FEATURES)
      list(APPEND options "-D${option}=ON")
    else()
      list(APPEND options "-D${option}=OFF")
    endif()
  endwhile()
  set(${arg_OUT_FEATURE_OPTIONS} "${options}" PARENT_SCOPE)
endfunction()

function(vcpkg_cmake_configure)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" SOURCE_PATH OPTIONS)
  if(NOT VCPKG_BUILD_TYPE STREQUAL "release" OR NOT arg_SOURCE_PATH STREQUAL SOURCE_DIR)
    message(FATAL_ERROR "vcpkg: expected a release build of ${SOURCE_DIR}, not ${arg_SOURCE_PATH}")
  endif()
  # The flags of Kiln's own build, for the compiler's cache.
  set(shared OFF)
  if(VCPKG_LIBRARY_LINKAGE STREQUAL "dynamic")
    set(shared ON)
  endif()
  run("${CMAKE_COMMAND}" -S "${arg_SOURCE_PATH}" -B "${WORK_DIR}/rel" -G "${GENERATOR}" -DBUILD_SHARED_LIBS=${shared}
    -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_FLAGS_RELEASE=-O3 -DNDEBUG -g0"
    "-DCMAKE_INSTALL_PREFIX=${CURRENT_PACKAGES_DIR}" -DCMAKE_INSTALL_LIBDIR=lib
    ${arg_OPTIONS} ${VCPKG_CMAKE_CONFIGURE_OPTIONS})
  if(output MATCHES "Manually-specified variables were not used")
    message(FATAL_ERROR "vcpkg: Kiln does not know these options\n${output}")
  endif()
endfunction()

function(vcpkg_cmake_install)
  if(BUILD)
    run("${CMAKE_COMMAND}" --build "${WORK_DIR}/rel" --target install)
  endif()
endfunction()

function(vcpkg_cmake_config_fixup)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" CONFIG_PATH "")
  if(BUILD)
    file(MAKE_DIRECTORY "${CURRENT_PACKAGES_DIR}/share")
    file(RENAME "${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH}" "${CURRENT_PACKAGES_DIR}/share/${PORT}")
    # vcpkg also mends paths in these files: they lie one folder higher now.
    file(GLOB files "${CURRENT_PACKAGES_DIR}/share/${PORT}/*.cmake")
    foreach(file IN LISTS files)
      file(READ "${file}" text)
      string(REPLACE [[${CMAKE_CURRENT_LIST_DIR}/../../../]] [[${CMAKE_CURRENT_LIST_DIR}/../../]] text "${text}")
      string(REGEX REPLACE "(get_filename_component\\(_IMPORT_PREFIX \"\\\${CMAKE_CURRENT_LIST_FILE}\" PATH\\)\n)get_filename_component\\(_IMPORT_PREFIX \"\\\${_IMPORT_PREFIX}\" PATH\\)\n" "\\1" text "${text}")
      file(WRITE "${file}" "${text}")
    endforeach()
  endif()
endfunction()

function(vcpkg_fixup_pkgconfig)
endfunction()

function(vcpkg_copy_tools)
  cmake_parse_arguments(PARSE_ARGV 0 arg AUTO_CLEAN "" TOOL_NAMES)
  if(BUILD)
    foreach(tool IN LISTS arg_TOOL_NAMES)
      file(INSTALL "${CURRENT_PACKAGES_DIR}/bin/${tool}" DESTINATION "${CURRENT_PACKAGES_DIR}/tools/${PORT}"
        USE_SOURCE_PERMISSIONS)
    endforeach()
  endif()
endfunction()

function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" FILE_LIST)
  foreach(file IN LISTS arg_FILE_LIST)
    if(NOT EXISTS "${file}")
      message(FATAL_ERROR "vcpkg: no file ${file}")
    endif()
  endforeach()
endfunction()

file(READ "${CURRENT_PORT_DIR}/vcpkg.json" manifest)
file(READ "${SOURCE_DIR}/CMakeLists.txt" project)
string(REGEX MATCH "project\\(kiln VERSION ([0-9.]+)" project "${project}")
string(JSON version GET "${manifest}" version)
if(NOT version STREQUAL CMAKE_MATCH_1)
  message(FATAL_ERROR "vcpkg: vcpkg.json has version ${version}; expected ${CMAKE_MATCH_1}")
endif()
string(JSON count LENGTH "${manifest}" features)
math(EXPR last "${count} - 1")
set(known_features "")
foreach(i RANGE ${last})
  string(JSON feature MEMBER "${manifest}" features ${i})
  list(APPEND known_features "${feature}")
endforeach()

function(port)
  set(FEATURES ${ARGN})
  set(CURRENT_PACKAGES_DIR "${WORK_DIR}/package")
  file(REMOVE_RECURSE "${WORK_DIR}")
  include("${CURRENT_PORT_DIR}/portfile.cmake")
endfunction()
if(NOT BUILD)
  port()
endif()
port(${known_features})
if(BUILD)
  run("${CMAKE_COMMAND}" -S "${SOURCE_DIR}/tests/consumer" -B "${WORK_DIR}/consumer" -G "${GENERATOR}"
    -DCMAKE_BUILD_TYPE=Release "-DCMAKE_PREFIX_PATH=${WORK_DIR}/package")
  run("${CMAKE_COMMAND}" --build "${WORK_DIR}/consumer")
  run("${WORK_DIR}/consumer/consumer")
  run("${WORK_DIR}/package/tools/kiln/kiln" info)
  message(STATUS "vcpkg: a program builds with the package and runs\n${output}")
endif()
