// Kernels of two floating point operands.
#pragma once

#include <cstdint>

#include "kiln/backend/cpu/elementwise.h"

namespace kiln::cpu {

enum class BinaryOp : uint8_t {
  // Bound by memory: they honour KernelArgs::stream.
  add,
  sub,
  mul,
  div,
  maximum,
  minimum,
  relu_backward,     // g, output
  sigmoid_backward,  // g, output
  tanh_backward,     // g, output
  // Long ones.
  silu_backward,       // g, input
  gelu_backward,       // g, input
  gelu_tanh_backward,  // g, input
  pow,
  remainder,
  atan2,
  count,
};

inline constexpr BinaryOp kFirstLong = BinaryOp::silu_backward;
constexpr int index_of(BinaryOp op) { return static_cast<int>(op); }

struct BinaryKernels {
  Kernel kernels[index_of(BinaryOp::count)][2];  // float, double
};
const BinaryKernels& binary_kernels();

// The long ones in double, and those in float that have no vector form: the C library's functions.
// Null for others.
Kernel scalar_binary_kernel(BinaryOp op, bool is_double);

}  // namespace kiln::cpu
