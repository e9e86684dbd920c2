// Kernels of one floating point operand.
#pragma once

#include <cstdint>

#include "kiln/backend/cpu/elementwise.h"

namespace kiln::cpu {

enum class UnaryOp : uint8_t {
  // Bound by memory: light_unary_kernels.
  neg,
  abs,
  sign,
  square,
  cube,
  sqrt,
  rsqrt,
  recip,
  floor,
  ceil,
  round,
  trunc,
  relu,
  clamp,  // parameters: low, high
  // Own approximations in float: math_kernels.
  exp,
  expm1,
  log,
  sigmoid,
  silu,
  tanh,
  erf,
  gelu,
  gelu_tanh,
  // In double, whatever the dtype: wide_math_kernels.
  log1p,
  log2,
  log10,
  sin,
  cos,
  tan,
  asin,
  acos,
  atan,
  sinh,
  cosh,
  asinh,
  acosh,
  atanh,
  count,
};

inline constexpr UnaryOp kFirstMath = UnaryOp::exp;
inline constexpr UnaryOp kFirstWideMath = UnaryOp::log1p;
constexpr int index_of(UnaryOp op) { return static_cast<int>(op); }

struct LightUnaryKernels {
  Kernel kernels[index_of(kFirstMath)][2];  // float, double; they honour KernelArgs::stream
};
const LightUnaryKernels& light_unary_kernels();

// float only.
struct MathKernels {
  Kernel kernels[index_of(kFirstWideMath) - index_of(kFirstMath)];
};
const MathKernels& math_kernels();

// float only.
struct WideMathKernels {
  Kernel kernels[index_of(UnaryOp::count) - index_of(kFirstWideMath)];
};
const WideMathKernels& wide_math_kernels();

// double, from kFirstMath on.
Kernel double_math_kernel(UnaryOp op);

// The kernel for a floating point dtype; 16-bit types use float's.
Kernel unary_kernel(UnaryOp op, DType dtype);

}  // namespace kiln::cpu
