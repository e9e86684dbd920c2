#include "kiln/nn/fusion.h"

#include "kiln/core/error.h"
#include "kiln/tensor/autograd/grad_mode.h"

namespace kiln::nn {

namespace {

template <class Layer, class Norm>
void check_foldable(const char* op, const Layer& layer, const Norm& bn, int64_t channels) {
  if (layer.is_training() || bn.is_training()) {
    throw_error<ValueError>(
        op,
        ": what is folded holds in eval mode only; got a layer in training mode; call eval() "
        "first");
  }
  if (!bn.running_mean.defined()) {
    throw_error<ValueError>(op, ": expected running statistics; got track_running_stats = false");
  }
  if (bn.num_features() != channels) {
    throw_error<ValueError>(op, ": expected a normalization of ", channels,
                            " channels, as the layer gives; got ", bn.num_features());
  }
}

// `layer` becomes bn(layer(x)). Its output channels lie along the weight's first dim, or, of a
// transposed convolution, in `groups` pieces along dims 0 and 1: [C, O / groups, K..].
template <class Layer, class Norm>
void fold(Layer& layer, const Tensor& weight, const Tensor* bias, const Norm& bn,
          int64_t transposed_groups) {
  const NoGradGuard no_grad;
  const double eps = bn.options().eps;
  Tensor scale = (*bn.running_var + eps).rsqrt();
  if (bn.weight.defined()) scale = scale * *bn.weight;
  Tensor shift = -*bn.running_mean;
  if (bias != nullptr) shift = shift + *bias;
  shift = shift * scale;
  if (bn.bias.defined()) shift = shift + *bn.bias;
  Tensor scaled;
  if (transposed_groups == 0) {
    Shape along = Shape::filled(weight.dim(), 1);
    along[0] = -1;
    scaled = weight * scale.reshape(along);
  } else {
    const int64_t groups = transposed_groups;
    const Tensor pieces = weight.reshape({groups, weight.size(0) / groups, weight.size(1), -1});
    scaled = (pieces * scale.reshape({groups, 1, weight.size(1), 1})).reshape(weight.shape());
  }
  layer.weight = Param<Tensor>::from_tensor(scaled.to(weight.dtype()));
  layer.bias = Param<Tensor>::from_tensor(shift.to(weight.dtype()));
  layer.eval();
}

template <class Conv, class Norm>
Conv fused_conv(const Conv& conv, const Norm& bn, bool transposed) {
  auto config = conv.config();
  check_foldable("fuse_conv_bn_eval", conv, bn, config.out_channels);
  const Tensor weight = conv.weight;
  const Tensor bias = config.options.bias ? Tensor(conv.bias) : Tensor();
  config.options.bias = true;
  Conv fused(config);
  fold(fused, weight, bias.defined() ? &bias : nullptr, bn, transposed ? config.options.groups : 0);
  return fused;
}

}  // namespace

Conv1d fuse_conv_bn_eval(const Conv1d& conv, const BatchNorm1d& bn) {
  return fused_conv(conv, bn, false);
}
Conv2d fuse_conv_bn_eval(const Conv2d& conv, const BatchNorm2d& bn) {
  return fused_conv(conv, bn, false);
}
Conv3d fuse_conv_bn_eval(const Conv3d& conv, const BatchNorm3d& bn) {
  return fused_conv(conv, bn, false);
}
ConvTranspose1d fuse_conv_bn_eval(const ConvTranspose1d& conv, const BatchNorm1d& bn) {
  return fused_conv(conv, bn, true);
}
ConvTranspose2d fuse_conv_bn_eval(const ConvTranspose2d& conv, const BatchNorm2d& bn) {
  return fused_conv(conv, bn, true);
}
ConvTranspose3d fuse_conv_bn_eval(const ConvTranspose3d& conv, const BatchNorm3d& bn) {
  return fused_conv(conv, bn, true);
}

Linear fuse_linear_bn_eval(const Linear& linear, const BatchNorm1d& bn) {
  check_foldable("fuse_linear_bn_eval", linear, bn, linear.out_features());
  const Tensor weight = linear.weight;
  const Tensor bias = linear.bias.defined() ? Tensor(linear.bias) : Tensor();
  Linear fused(linear.in_features(), linear.out_features(), true);
  fold(fused, weight, bias.defined() ? &bias : nullptr, bn, 0);
  return fused;
}

}  // namespace kiln::nn
