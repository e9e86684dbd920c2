#include "kiln/nn/fusion.h"

#include "kiln/core/error.h"
#include "kiln/tensor/autograd/grad_mode.h"

namespace kiln::nn {

Conv2d fuse_conv_bn_eval(const Conv2d& conv, const BatchNorm2d& bn) {
  if (conv.is_training() || bn.is_training()) {
    throw_error<ValueError>(
        "fuse_conv_bn_eval: what is folded holds in eval mode only; got a layer in training mode; "
        "call eval() first");
  }
  if (!bn.running_mean.defined()) {
    throw_error<ValueError>(
        "fuse_conv_bn_eval: expected running statistics; got track_running_stats = false");
  }
  if (bn.num_features() != conv.out_channels()) {
    throw_error<ValueError>("fuse_conv_bn_eval: expected a normalization of ", conv.out_channels(),
                            " channels, as the convolution gives; got ", bn.num_features());
  }
  const NoGradGuard no_grad;
  const Tensor weight = conv.weight;
  const double eps = bn.options().eps;
  Tensor scale = (*bn.running_var + eps).rsqrt();
  if (bn.weight.defined()) scale = scale * *bn.weight;
  Tensor shift = -*bn.running_mean;
  if (conv.bias.defined()) shift = shift + *conv.bias;
  shift = shift * scale;
  if (bn.bias.defined()) shift = shift + *bn.bias;

  Conv2dOptions options = conv.options();
  options.bias = true;
  Conv2d fused(conv.in_channels(), conv.out_channels(), conv.kernel_size(), options);
  fused.weight =
      Param<Tensor>::from_tensor((weight * scale.reshape({-1, 1, 1, 1})).to(weight.dtype()));
  fused.bias = Param<Tensor>::from_tensor(shift.to(weight.dtype()));
  fused.eval();
  return fused;
}

}  // namespace kiln::nn
