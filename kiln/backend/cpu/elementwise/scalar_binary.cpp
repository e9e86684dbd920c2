// Long binary kernels that are not in the table of binary_kernels.cpp.
#include <cmath>

#include "kiln/backend/cpu/elementwise/binary_kernels.h"
#include "kiln/backend/cpu/math/double_math.h"
#include "kiln/backend/cpu/math/special_kernels.h"

namespace kiln::cpu {
namespace {

// Python's %: the sign of the divisor.
double python_remainder(double a, double b) {
  const double r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

template <class T, T (*F)(T, T)>
void loop(const KernelArgs& args) {
  const auto* a = static_cast<const T*>(args.in[0]);
  const auto* b = static_cast<const T*>(args.in[1]);
  auto* out = static_cast<T*>(args.out);
  const int64_t step_a = (args.scalars & 1) == 0;
  const int64_t step_b = (args.scalars & 2) == 0;
  for (int64_t i = 0; i < args.n; ++i) out[i] = F(a[i * step_a], b[i * step_b]);
}

}  // namespace

Kernel scalar_binary_kernel(BinaryOp op, bool is_double) {
  switch (op) {
    case BinaryOp::remainder:
      return is_double ? loop<double, python_remainder> : special_kernels().remainder;
    case BinaryOp::atan2:
      return is_double ? double_math_kernels().atan2 : special_kernels().atan2;
    case BinaryOp::pow:
      return is_double ? double_math_kernels().pow : nullptr;
    case BinaryOp::silu_backward:
      return is_double ? double_math_kernels().silu_backward : nullptr;
    case BinaryOp::gelu_backward:
      return is_double ? double_math_kernels().gelu_backward : nullptr;
    case BinaryOp::gelu_tanh_backward:
      return is_double ? double_math_kernels().gelu_tanh_backward : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace kiln::cpu
