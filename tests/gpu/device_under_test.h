// The device that the tests of the GPU backend run on: "opencl", or what KILN_TEST_GPU names. Where
// KILN_CI is set one must be there.
#pragma once

#include <cstdlib>
#include <string>

#include <doctest/doctest.h>

#include "kiln/core/accelerator.h"
#include "kiln/core/device.h"

namespace kiln::test {

// A device's name, and functions of kiln/core/accelerator.h.
struct Gpu {
  const char* name;
  bool (*is_available)();
  std::string (*absence)();
  void (*synchronize)(int);
  accelerator::Counters (*counters)(int);
  accelerator::DeviceProperties (*properties)(int);
  MemoryStats (*memory_stats)(int);
  void (*reset_memory_stats)(int);
  void (*empty_cache)(int);
  void (*set_memory_limit)(size_t, int);
  int (*device_count)();
  accelerator::Event (*record_event)(int);
  MemoryStats (*pinned_memory_stats)(int);
};

#ifndef KILN_GPU_HOST
inline const Gpu& gpu() {
  static const Gpu opencl{"opencl",
                          &opencl::is_available,
                          &opencl::absence,
                          &opencl::synchronize,
                          &opencl::counters,
                          &opencl::device_properties,
                          &opencl::memory_stats,
                          &opencl::reset_memory_stats,
                          &opencl::empty_cache,
                          &opencl::set_memory_limit,
                          &opencl::device_count,
                          &opencl::record_event,
                          &opencl::pinned_memory_stats};
  static const Gpu cuda{"cuda",
                        &cuda::is_available,
                        &cuda::absence,
                        &cuda::synchronize,
                        &cuda::counters,
                        &cuda::device_properties,
                        &cuda::memory_stats,
                        &cuda::reset_memory_stats,
                        &cuda::empty_cache,
                        &cuda::set_memory_limit,
                        &cuda::device_count,
                        &cuda::record_event,
                        &cuda::pinned_memory_stats};
  const char* name = std::getenv("KILN_TEST_GPU");
  return name != nullptr && std::string(name) == "cuda" ? cuda : opencl;
}
#else
const Gpu& gpu();  // of tests/gpu_host
#endif

inline Device gpu_device() { return Device(gpu().name); }

inline bool has_gpu() {
  if (gpu().is_available()) return true;
  const std::string why = gpu().absence();
  if (std::getenv("KILN_CI") != nullptr) {
    FAIL_CHECK("no device: ", why);
  } else {
    MESSAGE("skipped, no device: ", why);
  }
  return false;
}

}  // namespace kiln::test
