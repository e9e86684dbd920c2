// Whether a test of the GPU backend has a device. Where KILN_CI is set one must be there.
#pragma once

#include <cstdlib>
#include <string>

#include <doctest/doctest.h>

#include "kiln/core/accelerator.h"

namespace kiln::test {

inline bool has_opencl() {
  if (opencl::is_available()) return true;
  const std::string why = opencl::absence();
  if (std::getenv("KILN_CI") != nullptr) {
    FAIL_CHECK("no OpenCL device: ", why);
  } else {
    MESSAGE("skipped, no OpenCL device: ", why);
  }
  return false;
}

}  // namespace kiln::test
