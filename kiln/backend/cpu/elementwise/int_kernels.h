// Kernels of integers.
#pragma once

#include <cstdint>

#include "kiln/backend/cpu/elementwise.h"
#include "kiln/backend/cpu/elementwise/compare_kernels.h"

namespace kiln::cpu {

enum class IntOp : uint8_t {
  add,
  sub,
  mul,
  div,        // rounds towards 0; no divisor may be 0
  remainder,  // has the divisor's sign; no divisor may be 0
  maximum,
  minimum,
  bitwise_and,
  bitwise_or,
  bitwise_xor,
  shift_left,    // 0 when the second is negative or not below the number of bits
  shift_right,   // keeps the sign; then 0 or -1
  floor_divide,  // rounds down; no divisor may be 0
  fmod,          // has the dividend's sign; no divisor may be 0
  count,
};

// dtype: an integer one, or bool, which counts as u8.
Kernel int_kernel(IntOp op, DType dtype);
Kernel int_compare_kernel(CompareOp op, DType dtype);
// One operand; clamp's parameters are two numbers of the dtype.
enum class IntUnaryOp : uint8_t { bitwise_not, neg, abs, sign, clamp, count };
Kernel int_unary_kernel(IntUnaryOp op, DType dtype);
// Whether some element is 0.
bool has_zero(const HostTensor& x);
// Throws ValueError naming `op` when some element is 0.
void check_divisor(const char* op, const HostHandle& divisor);

}  // namespace kiln::cpu
