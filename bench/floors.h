// What other libraries reach when they are called directly, with nothing of a framework around
// them: the floor of a row's time. Each is optional; without it there is one column less.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/workload.h"
#include "kiln/backend/options.h"
#include "kiln/core/shape.h"

namespace kiln::bench {

struct Floor {
  std::string name;
  WorkloadFactory make;
};

// C = A B of square matrices of floats: OpenBLAS's sgemm, oneDNN's matmul.
std::vector<Floor> matmul_floors(int64_t n);
// conv2d forward: oneDNN, in the layouts that it chooses itself (weights reordered beforehand).
std::vector<Floor> conv2d_floors(const Shape& x, const Shape& weight, const ConvOptions& options);

}  // namespace kiln::bench
