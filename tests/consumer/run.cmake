# Installs the built tree into a fresh prefix, then configures, builds and runs the consumer there.

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "consumer: failed (${result}): ${command}")
  endif()
endfunction()

file(REMOVE_RECURSE "${WORK_DIR}")
set(prefix "${WORK_DIR}/prefix")
run("${CMAKE_COMMAND}" --install "${BUILD_DIR}" --prefix "${prefix}")
# The class Cpu is public; the kernels' headers are nobody's business.
file(GLOB_RECURSE headers RELATIVE "${prefix}/include/kiln/backend/cpu"
  "${prefix}/include/kiln/backend/cpu/*")
if(NOT headers STREQUAL "cpu.h")
  message(FATAL_ERROR "consumer: internal headers were installed: ${headers}")
endif()
run("${CMAKE_COMMAND}" -S "${CONSUMER_DIR}" -B "${WORK_DIR}/build" -G "${GENERATOR}"
  "-DCMAKE_BUILD_TYPE=Release" "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_CXX_FLAGS=${FLAGS}"
  "-DCMAKE_PREFIX_PATH=${prefix}")
run("${CMAKE_COMMAND}" --build "${WORK_DIR}/build")
run("${WORK_DIR}/build/consumer")
run("${WORK_DIR}/build/consumer_precompiled")
# What is not installed is not found, and the message says so.
foreach(kind IN ITEMS other both)
  set(components "${kind}")
  set(message "no component 'other'")
  if(kind STREQUAL "both")
    set(components "shared;static")
    set(message "not both")
  endif()
  execute_process(COMMAND "${CMAKE_COMMAND}" -S "${CONSUMER_DIR}" -B "${WORK_DIR}/${kind}"
    -G "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_PREFIX_PATH=${prefix}"
    "-DKILN_KIND=${components}" RESULT_VARIABLE result OUTPUT_QUIET ERROR_VARIABLE error)
  if(result EQUAL 0 OR NOT error MATCHES "${message}")
    message(FATAL_ERROR "consumer: components '${components}' gave ${result}: ${error}")
  endif()
endforeach()
# The same without CMake.
find_program(PKG_CONFIG pkg-config)
file(GLOB_RECURSE pc "${prefix}/*/kiln.pc")
if(PKG_CONFIG AND pc)
  cmake_path(GET pc PARENT_PATH pc_dir)
  execute_process(COMMAND "${CMAKE_COMMAND}" -E env "PKG_CONFIG_PATH=${pc_dir}"
    "${PKG_CONFIG}" --cflags --libs kiln OUTPUT_VARIABLE flags COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags UNIX_COMMAND "${FLAGS} ${flags}")
  run("${COMPILER}" "${CONSUMER_DIR}/main.cpp" -o "${WORK_DIR}/by_pkg_config" ${flags})
  run("${WORK_DIR}/by_pkg_config")
endif()
if(PROGRAM)
  run("${prefix}/bin/${PROGRAM}" --help)
endif()
