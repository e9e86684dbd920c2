# The backend for GPUs: libkiln_gpu, a library of its own that libkiln opens when it is asked for a
# GPU. It is built against OpenCL's C headers alone; the loader and the drivers are opened at run time.

set(kiln_gpu_wanted ${KILN_GPU})
if(kiln_gpu_wanted AND NOT BUILD_SHARED_LIBS)
  message(STATUS "GPUs: no; a static libkiln has no library beside it to open")
  set(kiln_gpu_wanted OFF)
endif()
if(kiln_gpu_wanted AND KILN_PORTABLE)
  message(STATUS "GPUs: no; not yet in wheels for older systems")
  set(kiln_gpu_wanted OFF)
endif()
if(kiln_gpu_wanted)
  find_path(KILN_OPENCL_INCLUDE_DIR CL/cl.h)
  mark_as_advanced(KILN_OPENCL_INCLUDE_DIR)
  if(NOT KILN_OPENCL_INCLUDE_DIR)
    message(STATUS "GPUs: no; OpenCL's C headers are missing (Debian: opencl-c-headers, "
                   "Fedora and Arch: opencl-headers)")
    set(kiln_gpu_wanted OFF)
  endif()
endif()
if(NOT kiln_gpu_wanted)
  return()
endif()

# The kernels' texts, embedded. A changed text configures anew.
file(GLOB kernel_files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/kiln/backend/gpu/kernels/*.k")
set(kernel_entries "")
foreach(kernel_file IN LISTS kernel_files)
  cmake_path(GET kernel_file STEM stem)
  file(READ "${kernel_file}" text)
  string(APPEND kernel_entries "    {\"${stem}\", R\"kernel(${text})kernel\"},\n")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${kernel_file}")
endforeach()
set(kernel_texts "${PROJECT_BINARY_DIR}/kernel_texts.cpp")
file(CONFIGURE OUTPUT "${kernel_texts}" @ONLY CONTENT [[
// Made by cmake/KilnGpu.cmake from kiln/backend/gpu/kernels/.
#include "kiln/backend/gpu/kernel_texts.h"

#include <stdexcept>
#include <string>
#include <utility>

namespace kiln::gpu {

std::string_view kernel_text(std::string_view name) {
  static constexpr std::pair<std::string_view, std::string_view> kTexts[] = {
@kernel_entries@  };
  for (const auto& [key, text] : kTexts) {
    if (key == name) return text;
  }
  throw std::logic_error("no such kernel: " + std::string(name));
}

}  // namespace kiln::gpu
]])

# The backend without its drivers, for the plug-in and for the test program of kernels as C++.
file(GLOB gpu_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/kiln/backend/gpu/*.cpp"
  "${PROJECT_SOURCE_DIR}/kiln/backend/gpu/runtime/program_cache.cpp")
list(FILTER gpu_sources EXCLUDE REGEX "/plugin\\.cpp$")
file(GLOB gpu_driver_sources CONFIGURE_DEPENDS
  "${PROJECT_SOURCE_DIR}/kiln/backend/gpu/runtime/*.cpp")
list(FILTER gpu_driver_sources EXCLUDE REGEX "/program_cache\\.cpp$")
add_library(kiln_gpu_backend OBJECT ${gpu_sources} "${kernel_texts}")
set_target_properties(kiln_gpu_backend PROPERTIES POSITION_INDEPENDENT_CODE ON)
add_library(kiln_gpu SHARED "${PROJECT_SOURCE_DIR}/kiln/backend/gpu/plugin.cpp"
  ${gpu_driver_sources} $<TARGET_OBJECTS:kiln_gpu_backend>)
target_include_directories(kiln_gpu SYSTEM PRIVATE "${KILN_OPENCL_INCLUDE_DIR}")
target_compile_definitions(kiln_gpu PRIVATE KILN_VERSION="${PROJECT_VERSION}")
foreach(target IN ITEMS kiln_gpu_backend kiln_gpu)
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${target} PRIVATE kiln Threads::Threads ${CMAKE_DL_LIBS})
  kiln_target_flags(${target})
  target_compile_options(${target} PRIVATE "$<$<CONFIG:Release>:-Os>" -ffp-contract=off)
  kiln_compile_together(${target})
endforeach()
set_target_properties(kiln_gpu PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN")
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  target_link_options(kiln_gpu PRIVATE
    "-Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/kiln_gpu.map")
  set_target_properties(kiln_gpu PROPERTIES
    LINK_DEPENDS "${PROJECT_SOURCE_DIR}/cmake/kiln_gpu.map")
endif()

# Kernels that nvcc compiles ahead: a library of data beside the plug-in, which opens it where it is.
# Without it CUDA needs NVRTC.
if(KILN_CUDA_KERNELS)
  # script/gpu_kernels --install puts one there.
  file(GLOB nvcc_folders
    "${PROJECT_SOURCE_DIR}/build/nvcc/lib/python3*/site-packages/nvidia/cu13/bin")
  find_program(KILN_NVCC nvcc PATHS ${nvcc_folders} /usr/local/cuda/bin)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  if(NOT KILN_NVCC)
    message(FATAL_ERROR "KILN_CUDA_KERNELS needs nvcc (KILN_NVCC); ./script/gpu_kernels --install")
  endif()
  set(ahead_folder "${PROJECT_BINARY_DIR}/cuda_kernels")
  add_custom_command(OUTPUT "${ahead_folder}/images.cpp"
    COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/script/cuda_kernels.py" make
      "${ahead_folder}" "${KILN_NVCC}"
    DEPENDS "${PROJECT_SOURCE_DIR}/script/cuda_kernels.py"
      "${PROJECT_SOURCE_DIR}/kiln/backend/gpu/kernels/ahead.json" ${kernel_files}
    VERBATIM)
  add_library(kiln_cuda_kernels SHARED "${ahead_folder}/images.cpp")
  target_include_directories(kiln_cuda_kernels PRIVATE "${PROJECT_SOURCE_DIR}")
  kiln_target_flags(kiln_cuda_kernels)
  # It is opened by this name.
  set_target_properties(kiln_cuda_kernels PROPERTIES PREFIX "lib")
  
endif()
