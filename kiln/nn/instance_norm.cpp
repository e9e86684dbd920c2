#include "kiln/nn/instance_norm.h"

#include "kiln/core/error.h"
#include "kiln/nn/init.h"
#include "kiln/nn/repr.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/nn/normalization.h"

namespace kiln::nn {

InstanceNormLayer::InstanceNormLayer(const char* name, int dims, InstanceNormConfig config,
                                     const ParamOptions& param_options)
    : Layer(std::move(config)), name_(name), dims_(dims) {
  const int64_t features = config_.num_features;
  if (features < 0) {
    throw_error<ValueError>(name, ": num_features must not be negative; got ", features);
  }
  if (config_.affine) {
    weight = parameter({features}, init::ones_, param_options);
    if (config_.bias) bias = parameter({features}, init::zeros_, param_options);
  }
  if (config_.track_running_stats) {
    const TensorOptions tensor_options = {.dtype = param_options.dtype.value_or(default_dtype()),
                                          .device = param_options.device};
    running_mean = zeros({features}, tensor_options);
    running_var = ones({features}, tensor_options);
    num_batches_tracked = zeros({}, {.dtype = i64, .device = param_options.device});
  }
}

Tensor InstanceNormLayer::forward(const Tensor& x) const {
  const bool batched = x.dim() == dims_ + 1;
  if (!batched && x.dim() != dims_) {
    throw_error<ShapeError>(name_, ": expected ", dims_, " or ", dims_ + 1, " dims; got shape ",
                            x.shape());
  }
  const int64_t channels = x.size(batched ? 1 : 0);
  if (config_.affine && channels != config_.num_features.value()) {
    throw_error<ShapeError>(name_, ": expected num_features ", config_.num_features.value(),
                            " channels; got shape ", x.shape());
  }
  const bool tracked = !is_training() || config_.track_running_stats;
  const Tensor none;
  const Tensor out = functional::instance_norm(
      batched ? x : x.unsqueeze(0), tracked ? *running_mean : none, tracked ? *running_var : none,
      weight, bias, is_training() || !config_.track_running_stats, config_.momentum, config_.eps);
  return batched ? out : out.squeeze(0);
}

void InstanceNormLayer::reset_running_stats() {
  if (!running_mean.defined()) return;
  init::zeros_(*running_mean);
  init::ones_(*running_var);
  init::zeros_(*num_batches_tracked);
}

void InstanceNormLayer::reset_parameters() {
  reset_running_stats();
  refill(weight, init::ones_);
  refill(bias, init::zeros_);
}

std::string InstanceNormLayer::extra_repr() const {
  using detail::repr;
  return concat(config_.num_features.value(), ", eps=", repr(config_.eps),
                ", momentum=", repr(config_.momentum), ", affine=", repr(config_.affine),
                ", bias=", repr(bias.defined()),
                ", track_running_stats=", repr(config_.track_running_stats));
}

KILN_MODULE_DEFINED(InstanceNorm1d, weight, bias, running_mean, running_var, num_batches_tracked)
KILN_MODULE_DEFINED(InstanceNorm2d, weight, bias, running_mean, running_var, num_batches_tracked)
KILN_MODULE_DEFINED(InstanceNorm3d, weight, bias, running_mean, running_var, num_batches_tracked)

}  // namespace kiln::nn
