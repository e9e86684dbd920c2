#include "kiln/nn/batch_norm.h"

#include "kiln/core/error.h"
#include "kiln/nn/init.h"
#include "kiln/nn/repr.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"

namespace kiln::nn {

template <class ConfigType>
BatchNormLayer<ConfigType>::BatchNormLayer(const char* name, int least, int most, ConfigType config,
                                           const ParamOptions& param_options)
    : Layer<ConfigType>(std::move(config)), name_(name), least_(least), most_(most) {
  const int64_t features = num_features();
  if (features < 0) {
    throw_error<ValueError>(name, ": num_features must not be negative; got ", features);
  }
  if (options().affine) {
    weight = parameter({features}, init::ones_, param_options);
    if (options().bias) bias = parameter({features}, init::zeros_, param_options);
  }
  if (options().track_running_stats) {
    const TensorOptions tensor_options = {.dtype = param_options.dtype.value_or(default_dtype()),
                                          .device = param_options.device};
    running_mean = zeros({features}, tensor_options);
    running_var = ones({features}, tensor_options);
    num_batches_tracked = zeros({}, {.dtype = i64, .device = param_options.device});
  }
}

template <class ConfigType>
Tensor BatchNormLayer<ConfigType>::forward(TensorArg x) const {
  if (x->dim() < least_ || x->dim() > most_) {
    const std::string dims = least_ == most_ ? concat(least_, "D") : "2D or 3D";
    throw_error<ShapeError>(name_, ": expected ", dims, " input (got ", x->dim(),
                            "D input); got shape ", x->shape());
  }
  const int64_t channels = x->size(1);
  for (const Tensor* part :
       {weight.defined() ? &*weight : nullptr, running_mean.defined() ? &*running_mean : nullptr}) {
    if (part == nullptr || part->numel() == channels) continue;
    throw_error<ShapeError>(name_, ": the input has another number of channels; got ", channels,
                            " in an input of shape ", x->shape(), "; expected num_features ",
                            part->numel());
  }
  const bool tracks = options().track_running_stats;
  double momentum = options().momentum.value_or(0.0);
  if (this->is_training() && tracks && num_batches_tracked.defined()) {
    NoGradGuard no_grad;
    Tensor count = num_batches_tracked;
    count.add_(1);
    if (!options().momentum) momentum = 1.0 / count.item<double>();
  }
  const bool by_batch = this->is_training() || !running_mean.defined();
  const bool tracked = !this->is_training() || tracks;
  const Tensor none;
  return functional::batch_norm(x, tracked ? *running_mean : none, tracked ? *running_var : none,
                                weight, bias, by_batch, momentum, options().eps);
}

template <class ConfigType>
void BatchNormLayer<ConfigType>::reset_running_stats() {
  if (!running_mean.defined()) return;
  init::zeros_(*running_mean);
  init::ones_(*running_var);
  init::zeros_(*num_batches_tracked);
}

template <class ConfigType>
void BatchNormLayer<ConfigType>::reset_parameters() {
  reset_running_stats();
  refill(weight, init::ones_);
  refill(bias, init::zeros_);
}

template <class ConfigType>
std::string BatchNormLayer<ConfigType>::extra_repr() const {
  using detail::repr;
  const BatchNormOptions& o = options();
  return concat(num_features(), ", eps=", repr(o.eps),
                ", momentum=", o.momentum ? repr(*o.momentum) : "None", ", affine=", repr(o.affine),
                ", bias=", repr(bias.defined()),
                ", track_running_stats=", repr(o.track_running_stats));
}

template <class ConfigType>
bool BatchNormLayer<ConfigType>::may_lack(std::string_view name, const StateMetadata& saved) const {
  const auto version = saved.find("version");
  return name == "num_batches_tracked" && (version == saved.end() || version->second < 2);
}

template class BatchNormLayer<BatchNormConfig>;
template class BatchNormLayer<BatchNorm2dConfig>;

BatchNorm1d::BatchNorm1d(int64_t num_features, const BatchNormOptions& options,
                         const ParamOptions& param_options)
    : BatchNorm1d(BatchNormConfig{num_features, options}, param_options) {}
BatchNorm1d::BatchNorm1d(BatchNormConfig config, const ParamOptions& param_options)
    : BatchNormLayer("BatchNorm1d", 2, 3, std::move(config), param_options) {}

BatchNorm2d::BatchNorm2d(int64_t num_features, const BatchNormOptions& options,
                         const ParamOptions& param_options)
    : BatchNorm2d(BatchNorm2dConfig{num_features, options}, param_options) {}
BatchNorm2d::BatchNorm2d(BatchNorm2dConfig config, const ParamOptions& param_options)
    : BatchNormLayer("BatchNorm2d", 4, 4, std::move(config), param_options) {}
BatchNorm2d BatchNorm2dConfig::init(const ParamOptions& param_options) const {
  return BatchNorm2d(*this, param_options);
}

BatchNorm3d::BatchNorm3d(int64_t num_features, const BatchNormOptions& options,
                         const ParamOptions& param_options)
    : BatchNorm3d(BatchNormConfig{num_features, options}, param_options) {}
BatchNorm3d::BatchNorm3d(BatchNormConfig config, const ParamOptions& param_options)
    : BatchNormLayer("BatchNorm3d", 5, 5, std::move(config), param_options) {}

KILN_MODULE_DEFINED(BatchNorm1d, weight, bias, running_mean, running_var, num_batches_tracked)
KILN_MODULE_DEFINED(BatchNorm2d, weight, bias, running_mean, running_var, num_batches_tracked)
KILN_MODULE_DEFINED(BatchNorm3d, weight, bias, running_mean, running_var, num_batches_tracked)

}  // namespace kiln::nn
