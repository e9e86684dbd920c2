#include "kiln/nn/norm_layers.h"

#include "kiln/core/error.h"
#include "kiln/nn/init.h"
#include "kiln/nn/repr.h"
#include "kiln/tensor/nn/normalization.h"

namespace kiln::nn {

using detail::repr;
namespace F = functional;

GroupNorm::GroupNorm(GroupNormConfig config, const ParamOptions& param_options)
    : Layer(std::move(config)) {
  const int64_t groups = config_.num_groups, channels = config_.num_channels;
  if (groups < 1 || channels < 0 || channels % groups != 0) {
    throw_error<ValueError>("GroupNorm: num_channels must be divisible by num_groups; got ",
                            channels, " channels and ", groups, " groups");
  }
  if (!config_.affine) return;
  weight = parameter({channels}, init::ones_, param_options);
  if (config_.bias) bias = parameter({channels}, init::zeros_, param_options);
}
Tensor GroupNorm::forward(const Tensor& x) const {
  return F::group_norm(x, config_.num_groups, weight, bias, config_.eps);
}
void GroupNorm::reset_parameters() {
  refill(weight, init::ones_);
  refill(bias, init::zeros_);
}
std::string GroupNorm::extra_repr() const {
  return concat(config_.num_groups.value(), ", ", config_.num_channels.value(),
                ", eps=", repr(config_.eps), ", affine=", repr(config_.affine),
                ", bias=", repr(bias.defined()));
}

RMSNorm::RMSNorm(int64_t features, RMSNormConfig options, const ParamOptions& param_options)
    : RMSNorm(Shape{features}, std::move(options), param_options) {}
RMSNorm::RMSNorm(RMSNormConfig config, const ParamOptions& param_options)
    : Layer(std::move(config)) {
  const Shape sizes = shape();
  bool legal = !sizes.empty();
  for (const int64_t size : sizes) legal = legal && size >= 0;
  if (!legal) {
    throw_error<ValueError>(
        "RMSNorm: normalized_shape must have at least one dim, and no negative "
        "one; got ",
        sizes);
  }
  if (config_.elementwise_affine) weight = parameter(sizes, init::ones_, param_options);
}
Shape RMSNorm::shape() const {
  return Shape(std::span<const int64_t>(config_.normalized_shape.value()));
}
Tensor RMSNorm::forward(const Tensor& x) const {
  const std::optional<double> eps =
      config_.eps ? std::optional<double>(*config_.eps) : std::nullopt;
  return F::rms_norm(x, shape(), weight, eps);
}
void RMSNorm::reset_parameters() { refill(weight, init::ones_); }
std::string RMSNorm::extra_repr() const {
  return concat(repr(shape()), ", eps=", config_.eps ? repr(*config_.eps) : "None",
                ", elementwise_affine=", repr(config_.elementwise_affine));
}

LocalResponseNorm::LocalResponseNorm(LocalResponseNormConfig config) : Layer(config) {
  if (config_.size < 1) {
    throw_error<ValueError>("LocalResponseNorm: size must be at least 1; got ",
                            config_.size.value());
  }
}
Tensor LocalResponseNorm::forward(const Tensor& x) const {
  return F::local_response_norm(x, config_.size, config_.alpha, config_.beta, config_.k);
}
std::string LocalResponseNorm::extra_repr() const {
  const LocalResponseNormConfig& c = config_;
  return concat(c.size.value(), ", alpha=", repr(c.alpha), ", beta=", repr(c.beta),
                ", k=", repr(c.k));
}

KILN_MODULE_DEFINED(GroupNorm, weight, bias)
KILN_MODULE_DEFINED(RMSNorm, weight)
KILN_MODULE_DEFINED(LocalResponseNorm)

}  // namespace kiln::nn
