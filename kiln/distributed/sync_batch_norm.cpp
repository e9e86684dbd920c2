#include "kiln/distributed/sync_batch_norm.h"

#include "kiln/core/error.h"
#include "kiln/distributed/differentiable.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"

namespace kiln::distributed {

SyncBatchNorm::SyncBatchNorm(int64_t num_features, std::shared_ptr<ProcessGroup> group,
                             const nn::BatchNormOptions& options,
                             const nn::ParamOptions& param_options)
    : BatchNormLayer("SyncBatchNorm", 2, 5, nn::BatchNormConfig{num_features, options},
                     param_options),
      group_(std::move(group)) {
  if (group_ == nullptr) throw_error<ValueError>("SyncBatchNorm: there is no process group");
}

Tensor SyncBatchNorm::forward(TensorArg input) const {
  const bool by_batch = is_training() || !running_mean.defined();
  if (group_->size() == 1 || !by_batch || input->dim() < 2 || input->dim() > 5 ||
      input->size(1) != num_features()) {
    return BatchNormLayer::forward(input);  // which refuses what does not fit
  }
  const DType dtype = input->dtype();
  const Tensor x = dtype == f16 || dtype == bf16 ? input->to(f32) : input.get();
  const int64_t channels = x.size(1);
  Dims dims{0};
  Shape shape(std::vector<int64_t>(static_cast<size_t>(x.dim()), 1));
  for (int64_t dim = 2; dim < x.dim(); ++dim) dims.push_back(dim);
  shape[1] = channels;
  // Of each process: means, variances and how many numbers they are of.
  const Tensor count =
      full({1}, static_cast<double>(x.numel()) / static_cast<double>(channels), x.options());
  const bool has_none = x.numel() == 0;
  const Tensor own_mean = has_none ? x.sum(dims) : x.mean(dims);
  const Tensor centered = x - own_mean.view(shape);
  const Tensor own_variance = has_none ? x.sum(dims) : (centered * centered).mean(dims);
  const Tensor parts =
      stack(differentiable::all_gather(cat({own_mean, own_variance, count}), group_), 0);
  const Tensor means = parts.narrow(1, 0, channels);
  const Tensor variances = parts.narrow(1, channels, channels);
  const Tensor counts = parts.narrow(1, 2 * channels, 1);
  const Tensor total = counts.sum();
  const Tensor mean = (means * counts).sum(0) / total;
  const Tensor variance = ((variances + (means - mean).square()) * counts).sum(0) / total;
  if (is_training() && running_mean.defined()) {
    track(mean.detach(), (variance * (total / (total - 1.0))).detach());
  }
  Tensor scale = (variance + static_cast<double>(options().eps)).rsqrt();
  Tensor shift = -mean * scale;
  if (weight.defined()) {
    scale = scale * *weight;
    shift = shift * *weight;
  }
  if (bias.defined()) shift = shift + *bias;
  const Tensor out = x * scale.view(shape) + shift.view(shape);
  return out.dtype() == dtype ? out : out.to(dtype);
}

// Moves the running statistics towards those of this step.
void SyncBatchNorm::track(const Tensor& mean, const Tensor& variance) const {
  const NoGradGuard no_grad;
  Tensor count = num_batches_tracked;
  count.add_(1);
  const double momentum =
      options().momentum ? static_cast<double>(*options().momentum) : 1.0 / count.item<double>();
  Tensor running = running_mean;
  running.lerp_(mean.to(running.dtype()), momentum);
  running = running_var;
  running.lerp_(variance.to(running.dtype()), momentum);
}

KILN_MODULE_DEFINED(SyncBatchNorm, weight, bias, running_mean, running_var, num_batches_tracked)

}  // namespace kiln::distributed
