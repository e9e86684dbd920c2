#include "kiln/distributions/von_mises.h"

#include <cmath>
#include <numbers>

#include "kiln/distributions/support.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/elementwise/pointwise.h"
#include "kiln/tensor/elementwise/special.h"
#include "kiln/tensor/index/advanced_index.h"
#include "kiln/tensor/index/scatter.h"
#include "kiln/tensor/ops.h"

namespace kiln::distributions {

namespace {

constexpr double kPi = std::numbers::pi;

// Angles around 0 for a flat f64 tensor of concentrations: a wrapped Cauchy distribution, with
// rejection.
Tensor draw_angles(const Tensor& k) {
  const Tensor tau = 1 + (1 + 4 * k.square()).sqrt();
  const Tensor rho = (tau - (2 * tau).sqrt()) / (2 * k);
  // For small concentrations the difference above has no digits.
  const Tensor r = where(k < 1e-5, 1 / k + k, (1 + rho.square()) / (2 * rho));
  Tensor result = zeros_like(k);
  Tensor pending = nonzero(r.isfinite() & (k > 0)).select(1, 0);
  while (pending.numel() > 0) {
    const Tensor r_now = r.index_select(0, pending), k_now = k.index_select(0, pending);
    const Tensor u = uniform_numbers({3, pending.numel()}, k);
    const Tensor z = (kPi * u[0]).cos();
    const Tensor f = (1 + r_now * z) / (r_now + z);
    const Tensor c = k_now * (r_now - f);
    const Tensor accepted = (c * (2 - c) > u[1]) | ((c / u[1]).log() + 1 - c >= 0);
    const Tensor angles = (u[2] - 0.5).sign() * f.clamp(-1, 1).acos();
    result =
        index_copy(result, 0, masked_select(pending, accepted), masked_select(angles, accepted));
    pending = masked_select(pending, !accepted);
  }
  return result;
}

}  // namespace

VonMises::VonMises(const TensorOrNumber& loc, const TensorOrNumber& concentration,
                   std::optional<bool> validate_args)
    : Distribution("VonMises", validate_args) {
  broadcast_parameters(name(),
                       {{"loc", loc, &loc_}, {"concentration", concentration, &concentration_}});
  set_shapes(loc_.shape());
  check_parameter("loc", loc_, constraints::real());
  check_parameter("concentration", concentration_, constraints::positive());
}

std::unique_ptr<Distribution> VonMises::expand(const Shape& batch_shape) const {
  return widened(*this, batch_shape, {&VonMises::loc_, &VonMises::concentration_});
}

Tensor VonMises::sample(const Shape& sample_shape) const {
  NoGradGuard guard;
  const Shape shape = draw_shape(sample_shape);
  // In f32 the angles of narrow distributions would be coarse.
  const Tensor k = concentration_.to(f64).expand(shape).reshape({-1});
  const Tensor angles = draw_angles(k).reshape(shape) + loc_.to(f64);
  return ((angles + kPi) % (2 * kPi) - kPi).to(loc_.dtype());
}

Tensor VonMises::log_prob(const Tensor& value) const {
  check_value(value);
  // I0 grows like e^k; i0e is without that factor.
  const Tensor cosine = concentration_ * ((value - loc_).cos() - 1);
  return cosine - std::log(2 * kPi) - special::i0e(concentration_).log();
}

Tensor VonMises::mean() const { return loc_; }
Tensor VonMises::mode() const { return loc_; }

Tensor VonMises::variance() const {
  return 1 - special::i1e(concentration_) / special::i0e(concentration_);
}

}  // namespace kiln::distributions
