// Kernels that compare two operands, or test one, and write bools.
#pragma once

#include <cstdint>

#include "kiln/backend/cpu/elementwise.h"

namespace kiln::cpu {

// `lower` and `lower_equal` are these with their operands swapped.
enum class CompareOp : uint8_t { equal, not_equal, greater, greater_equal, count };
constexpr int index_of(CompareOp op) { return static_cast<int>(op); }

struct CompareKernels {
  Kernel kernels[index_of(CompareOp::count)][2];  // float, double
  Kernel is_inf[2];
};
const CompareKernels& compare_kernels();

}  // namespace kiln::cpu
