#include "kiln/optim/adafactor.h"

#include <algorithm>
#include <cmath>

#include "kiln/core/error.h"
#include "kiln/optim/ruled_optimizer_impl.h"
#include "kiln/tensor/elementwise/in_place.h"
#include "kiln/tensor/elementwise/pointwise.h"
#include "kiln/tensor/ops.h"

namespace kiln::optim {

namespace {

// The distance from 1 to the next number.
double rounding_unit(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 0x1p-52;
    case DType::f16:
      return 0x1p-10;
    case DType::bf16:
      return 0x1p-7;
    default:
      return 0x1p-23;
  }
}

double rms(const Tensor& x) {
  return x.norm().item<double>() / std::sqrt(static_cast<double>(x.numel()));
}

}  // namespace

void AdafactorRule::check(const std::string& op, const Options& options) {
  for (const double eps : options.eps) detail::check_not_negative(op, "eps", eps);
  if (!(options.beta2_decay <= 0.0)) {
    throw_error<ValueError>(op, ": beta2_decay must be <= 0; got ", options.beta2_decay);
  }
  if (!(options.d >= 1.0)) throw_error<ValueError>(op, ": d must be >= 1; got ", options.d);
}

std::vector<StateInfo> AdafactorRule::slots(const Options&) {
  return {{"row_var", 0.0, StateShape::rows},
          {"col_var", 0.0, StateShape::columns},
          {"variance", 0.0, StateShape::vector}};
}

void AdafactorRule::compose(const Options& options, int64_t t, Tensor& p, const Tensor& g,
                            std::span<Tensor> slots) {
  if (p.numel() == 0) return;
  const auto steps = static_cast<double>(t);
  const double newest = std::pow(steps, options.beta2_decay);
  const double eps1 = options.eps[0] > 0.0 ? options.eps[0] : rounding_unit(p.dtype());
  const double alpha =
      std::max(options.eps[1], rms(p)) * std::min(options.lr, 1.0 / std::sqrt(steps));
  if (options.weight_decay != 0.0) p.mul_(1.0 - options.lr * options.weight_decay);
  Tensor v;
  const Tensor square = g * g;
  if (p.dim() > 1) {
    Tensor& rows = lerp_(slots[0], square.mean({-1}, true), newest);
    Tensor& columns = lerp_(slots[1], square.mean({-2}, true), newest);
    v = matmul(rows, columns) / rows.mean({-2}, true).clamp(eps1, {});
  } else {
    v = lerp_(slots[2], square, newest);
  }
  const Tensor u = g * v.clamp(eps1 * eps1, {}).rsqrt();
  p.add_(u, -alpha / std::max(1.0, rms(u) / options.d));
}

template class RuledOptimizer<AdafactorRule>;

}  // namespace kiln::optim
