#include "kiln/optim/muon.h"

#include <algorithm>
#include <cmath>

#include "kiln/core/error.h"
#include "kiln/optim/ruled_optimizer_impl.h"
#include "kiln/tensor/elementwise/in_place.h"
#include "kiln/tensor/elementwise/pointwise.h"
#include "kiln/tensor/ops.h"

namespace kiln::optim {

namespace {

// Newton and Schulz's iteration for the orthogonal factor of x, on the wide one of x and x^T.
Tensor orthogonal(const Tensor& x, const MuonOptions& options) {
  const bool tall = x.size(0) > x.size(1);
  Tensor u = x.dtype() == f64 ? x : x.to(f32);
  if (tall) u = u.t();
  u = u / u.norm().clamp(options.eps, {});
  for (int64_t i = 0; i < options.ns_steps; ++i) {
    const Tensor gram = matmul(u, u.t());
    const Tensor mix =
        gram * options.ns_coefficients[1] + matmul(gram, gram) * options.ns_coefficients[2];
    u = u * options.ns_coefficients[0] + matmul(mix, u);
  }
  return tall ? u.t() : u;
}

void check_steps(const MuonOptions& options) {
  if (options.ns_steps < 0 || options.ns_steps >= 100) {
    throw_error<ValueError>("Muon: ns_steps must be in [0, 100); got ", options.ns_steps);
  }
}

double rate_of(const MuonOptions& options, const Tensor& p) {
  const auto rows = static_cast<double>(p.size(0)), columns = static_cast<double>(p.size(1));
  if (options.adjust_lr_fn == MuonRate::match_rms_adamw) {
    return options.lr * 0.2 * std::sqrt(std::max(rows, columns));
  }
  return options.lr * std::sqrt(std::max(1.0, rows / columns));
}

}  // namespace

void MuonRule::check(const std::string& op, const Options& options) {
  detail::check_not_negative(op, "momentum", options.momentum);
  detail::check_not_negative(op, "eps", options.eps);
  check_steps(options);
}

std::vector<StateInfo> MuonRule::slots(const Options&) { return {{"momentum_buffer"}}; }

void MuonRule::compose(const Options& options, int64_t, Tensor& p, const Tensor& g,
                       std::span<Tensor> slots) {
  if (p.dim() != 2) {
    throw_error<ShapeError>("Muon: parameters must have two dims; got shape ", p.shape(),
                            ", try AdamW for the others");
  }
  check_steps(options);
  Tensor& buffer = slots[0];
  lerp_(buffer, g, 1.0 - options.momentum);
  const Tensor update = options.nesterov ? lerp(g, buffer, options.momentum) : buffer;
  p.mul_(1.0 - options.lr * options.weight_decay);
  p.add_(orthogonal(update, options).to(p.dtype()), -rate_of(options, p));
}

template class RuledOptimizer<MuonRule>;

}  // namespace kiln::optim
