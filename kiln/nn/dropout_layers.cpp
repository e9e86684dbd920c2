#include "kiln/nn/dropout_layers.h"

#include <cmath>

#include "kiln/core/error.h"
#include "kiln/nn/in_place.h"
#include "kiln/nn/repr.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/nn/dropout.h"

namespace kiln::nn {

using detail::in_place;
using detail::repr;
namespace F = functional;

DropoutLayer::DropoutLayer(const char* name, const DropoutConfig& config) : Layer(config) {
  const double p = config_.p;
  if (!(p >= 0.0 && p <= 1.0)) {
    throw_error<ValueError>(name, ": p must be between 0 and 1; got ", repr(config_.p));
  }
}

std::string DropoutLayer::extra_repr() const {
  return concat("p=", repr(config_.p), ", inplace=", repr(config_.inplace));
}

Tensor Dropout1d::forward(const Tensor& x) const {
  if (!is_training()) return x;
  return in_place(config_.inplace, x,
                  [&](const Tensor& y) { return F::dropout1d(y, config_.p, true); });
}
Tensor Dropout2d::forward(const Tensor& x) const {
  if (!is_training()) return x;
  return in_place(config_.inplace, x,
                  [&](const Tensor& y) { return F::dropout2d(y, config_.p, true); });
}
Tensor Dropout3d::forward(const Tensor& x) const {
  if (!is_training()) return x;
  return in_place(config_.inplace, x,
                  [&](const Tensor& y) { return F::dropout3d(y, config_.p, true); });
}
Tensor AlphaDropout::forward(const Tensor& x) const {
  return is_training() ? F::alpha_dropout(x, config_.p, true) : x;
}
Tensor FeatureAlphaDropout::forward(const Tensor& x) const {
  return is_training() ? F::feature_alpha_dropout(x, config_.p, true) : x;
}

GaussianNoise::GaussianNoise(GaussianNoiseConfig config) : Layer(config) {
  const double std = config_.std.value();
  if (!(std >= 0.0) || std::isinf(std)) {
    throw_error<ValueError>("GaussianNoise: std must be finite and not negative; got ",
                            repr(config_.std.value()));
  }
}

Tensor GaussianNoise::forward(const Tensor& x) const {
  const double std = config_.std.value();
  if (!is_training() || std == 0.0) return x;
  return x + randn_like(x.detach()) * std;
}

std::string GaussianNoise::extra_repr() const { return "std=" + repr(config_.std.value()); }

KILN_MODULE_DEFINED(Dropout1d)
KILN_MODULE_DEFINED(Dropout2d)
KILN_MODULE_DEFINED(Dropout3d)
KILN_MODULE_DEFINED(AlphaDropout)
KILN_MODULE_DEFINED(FeatureAlphaDropout)
KILN_MODULE_DEFINED(GaussianNoise)

}  // namespace kiln::nn
