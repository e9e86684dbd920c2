#include "kiln/backend/cpu/double_math.h"

#include "kiln/backend/cpu/unary_kernels.h"

namespace kiln::cpu {
namespace {

template <double (*F)(double)>
void loop(const KernelArgs& args) {
  const auto* x = static_cast<const double*>(args.in[0]);
  auto* out = static_cast<double*>(args.out);
  if (args.scalars != 0) {
    const double value = F(x[0]);
    for (int64_t i = 0; i < args.n; ++i) out[i] = value;
    return;
  }
  for (int64_t i = 0; i < args.n; ++i) out[i] = F(x[i]);
}

}  // namespace

Kernel double_math_kernel(UnaryOp op) {
  static constexpr Kernel table[] = {
      loop<std::exp>,         loop<std::expm1>, loop<std::log>,   loop<double_sigmoid>,
      loop<double_silu>,      loop<std::tanh>,  loop<std::erf>,   loop<double_gelu>,
      loop<double_gelu_tanh>, loop<std::log1p>, loop<std::log2>,  loop<std::log10>,
      loop<std::sin>,         loop<std::cos>,   loop<std::tan>,   loop<std::asin>,
      loop<std::acos>,        loop<std::atan>,  loop<std::sinh>,  loop<std::cosh>,
      loop<std::asinh>,       loop<std::acosh>, loop<std::atanh>,
  };
  static_assert(std::size(table) == index_of(UnaryOp::count) - index_of(kFirstMath));
  return table[index_of(op) - index_of(kFirstMath)];
}

}  // namespace kiln::cpu
