#include "kiln/nn/batch_norm2d.h"

#include "kiln/core/error.h"
#include "kiln/nn/init.h"
#include "kiln/nn/repr.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/grad_mode.h"

namespace kiln::nn {

BatchNorm2d::BatchNorm2d(int64_t num_features, const BatchNorm2dOptions& options,
                         const ParamOptions& param_options)
    : num_features_(num_features), options_(options) {
  if (num_features < 0) {
    throw_error<ValueError>("BatchNorm2d: num_features must not be negative; got ", num_features);
  }
  if (options.affine) {
    weight = parameter({num_features}, init::ones_, param_options);
    bias = parameter({num_features}, init::zeros_, param_options);
  }
  if (options.track_running_stats) {
    const TensorOptions tensor_options = {.dtype = param_options.dtype.value_or(default_dtype()),
                                          .device = param_options.device};
    running_mean = zeros({num_features}, tensor_options);
    running_var = ones({num_features}, tensor_options);
    num_batches_tracked = zeros({}, {.dtype = i64, .device = param_options.device});
  }
}

Tensor BatchNorm2d::forward(TensorArg x) const {
  if (x->dim() != 4) {
    throw_error<ShapeError>("BatchNorm2d: the input must have 4 dims; got shape ", x->shape());
  }
  double momentum = options_.momentum.value_or(0.0);
  if (is_training() && num_batches_tracked.defined()) {
    NoGradGuard no_grad;
    Tensor count = num_batches_tracked;
    count.add_(1);
    if (!options_.momentum) momentum = 1.0 / count.item<double>();
  }
  const bool by_batch = is_training() || !running_mean.defined();
  return functional::batch_norm(x, running_mean, running_var, weight, bias, by_batch, momentum,
                                options_.eps);
}

void BatchNorm2d::reset_running_stats() {
  if (!running_mean.defined()) return;
  init::zeros_(*running_mean);
  init::ones_(*running_var);
  init::zeros_(*num_batches_tracked);
}

void BatchNorm2d::reset_parameters() {
  reset_running_stats();
  refill(weight, init::ones_);
  refill(bias, init::zeros_);
}

std::string BatchNorm2d::extra_repr() const {
  using detail::repr;
  return concat(num_features_, ", eps=", repr(options_.eps),
                ", momentum=", options_.momentum ? repr(*options_.momentum) : "None",
                ", affine=", repr(options_.affine), ", bias=", repr(bias.defined()),
                ", track_running_stats=", repr(options_.track_running_stats));
}

bool BatchNorm2d::may_lack(std::string_view name, const StateMetadata& saved) const {
  const auto version = saved.find("version");
  return name == "num_batches_tracked" && (version == saved.end() || version->second < 2);
}

}  // namespace kiln::nn
