#include "kiln/models/vision_blocks.h"

#include <algorithm>

#include "kiln/core/error.h"
#include "kiln/nn/activation_layers.h"
#include "kiln/nn/init.h"
#include "kiln/nn/relu.h"
#include "kiln/nn/silu.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/nn/activations.h"
#include "kiln/tensor/nn/pooling.h"

namespace kiln::models {

int64_t make_divisible(double value, int64_t divisor) {
  const auto rounded =
      std::max(divisor, static_cast<int64_t>(value + double(divisor) / 2) / divisor * divisor);
  return double(rounded) < 0.9 * value ? rounded + divisor : rounded;
}

void require_positive(const char* model, const char* name, int64_t value) {
  if (value < 1) {
    throw_error<ValueError>(model, ": ", name, " must be at least 1; got ", value);
  }
}

nn::Conv2d conv2d(int64_t inputs, int64_t outputs, nn::Size2d kernel,
                  const nn::Conv2dOptions& options, const Initializer& init) {
  nn::Conv2d conv(inputs, outputs, kernel, options);
  conv.weight = nn::parameter(conv.weight.lazy_shape(), init);
  if (options.bias) conv.bias = nn::parameter({outputs}, nn::init::zeros_);
  return conv;
}

nn::Linear linear(int64_t inputs, int64_t outputs, const Initializer& init) {
  nn::Linear layer(inputs, outputs);
  layer.weight = nn::parameter({outputs, inputs}, init);
  layer.bias = nn::parameter({outputs}, nn::init::zeros_);
  return layer;
}

Initializer kaiming(bool relu) {
  using namespace nn::init;
  const Nonlinearity gain = relu ? Nonlinearity::relu : Nonlinearity::linear;
  return [gain](Tensor& x) { kaiming_normal_(x, 0, FanMode::fan_out, gain); };
}
Initializer normal(double std) {
  return [std](Tensor& x) { nn::init::normal_(x, 0, std); };
}
Initializer truncated_normal(double std) {
  return [std](Tensor& x) { nn::init::trunc_normal_(x, 0, std); };
}

nn::Sequential conv_norm_activation(int64_t inputs, int64_t outputs, const ConvNormOptions& o) {
  nn::Sequential out(conv2d(inputs, outputs, o.kernel,
                            {.stride = o.stride,
                             .padding = (o.kernel - 1) / 2 * o.dilation,
                             .dilation = o.dilation,
                             .groups = o.groups,
                             .bias = false},
                            kaiming()),
                     nn::BatchNorm2d(outputs, o.norm));
  if (o.act == Act::relu) out.push_back(nn::ReLU());
  if (o.act == Act::hardswish) out.push_back(nn::Hardswish());
  if (o.act == Act::silu) out.push_back(nn::SiLU());
  return out;
}

SqueezeExcitation::SqueezeExcitation(int64_t inputs, int64_t squeezed, bool hard)
    : fc1(conv2d(inputs, squeezed, 1, {}, kaiming())),
      fc2(conv2d(squeezed, inputs, 1, {}, kaiming())),
      hard_(hard) {}

Tensor SqueezeExcitation::forward(const Tensor& x) {
  const Tensor mean = functional::adaptive_avg_pool2d(x, {1, 1});
  if (hard_) return functional::hardsigmoid(fc2(relu(fc1(mean)))) * x;
  return sigmoid(fc2(silu(fc1(mean)))) * x;
}
KILN_MODULE_DEFINED(SqueezeExcitation, fc1, fc2)

Tensor stochastic_depth(const Tensor& x, double p, bool training) {
  if (!training || p == 0) return x;
  Shape rows = x.shape();
  for (int64_t dim = 1; dim < x.dim(); ++dim) rows[dim] = 1;
  const double keep = 1 - p;
  const Tensor noise = bernoulli(full(rows, keep, {.dtype = x.dtype(), .device = x.device()}));
  return keep > 0 ? x * (noise / keep) : x * noise;
}

InvertedResidual::InvertedResidual(int64_t inputs, const InvertedResidualOptions& o)
    : adds_(o.stride == 1 && inputs == o.outputs), stochastic_depth_prob_(o.stochastic_depth_prob) {
  if (!(o.stochastic_depth_prob >= 0 && o.stochastic_depth_prob <= 1)) {
    throw_error<ValueError>("InvertedResidual: stochastic_depth_prob must be from 0 to 1; got ",
                            o.stochastic_depth_prob);
  }
  if (o.expanded != inputs) {
    block.push_back(
        conv_norm_activation(inputs, o.expanded, {.kernel = 1, .act = o.act, .norm = o.norm}));
  }
  block.push_back(conv_norm_activation(o.expanded, o.expanded,
                                       {.kernel = o.kernel,
                                        .stride = o.dilation > 1 ? 1 : o.stride,
                                        .groups = o.expanded,
                                        .dilation = o.dilation,
                                        .act = o.act,
                                        .norm = o.norm}));
  if (o.squeezed > 0) block.push_back(SqueezeExcitation(o.expanded, o.squeezed, o.hard));
  block.push_back(
      conv_norm_activation(o.expanded, o.outputs, {.kernel = 1, .act = Act::none, .norm = o.norm}));
}

Tensor InvertedResidual::forward(const Tensor& x) {
  const Tensor y = block(x);
  return adds_ ? stochastic_depth(y, stochastic_depth_prob_, is_training()) + x : y;
}
KILN_MODULE_DEFINED(InvertedResidual, block)

LayerNorm2d::LayerNorm2d(int64_t channels)
    : weight(nn::parameter({channels}, nn::init::ones_)),
      bias(nn::parameter({channels}, nn::init::zeros_)) {}

Tensor LayerNorm2d::forward(const Tensor& x) {
  const Tensor last = x.permute({0, 2, 3, 1});
  return functional::layer_norm(last, {x.size(1)}, *weight, *bias, 1e-6).permute({0, 3, 1, 2});
}
KILN_MODULE_DEFINED(LayerNorm2d, weight, bias)

}  // namespace kiln::models
