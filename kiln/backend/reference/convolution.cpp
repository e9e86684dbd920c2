// Convolution and its two gradients: one loop over every product, in three directions.
#include <algorithm>

#include "kiln/backend/reference/activation.h"
#include "kiln/backend/reference/elements.h"

namespace kiln {

using reference::make;
using reference::Ops;
using reference::position;
using reference::read;
using reference::Tensor;

namespace {

// Calls fn(x, weight, out), the positions of the three elements, for every product x * weight that
// out sums.
template <class Fn>
void for_each_product(const Shape& x, const Shape& weight, const Shape& out, const ConvOptions& o,
                      Fn&& fn) {
  const int64_t group_in = weight[1];
  const int64_t group_out = weight[0] / o.groups;
  reference::for_each_index(out, [&](const Shape& at) {
    const int64_t group = at[1] / group_out;
    for (int64_t c = 0; c < group_in; ++c) {
      for (int64_t kh = 0; kh < weight[2]; ++kh) {
        for (int64_t kw = 0; kw < weight[3]; ++kw) {
          const int64_t row = at[2] * o.stride[0] - o.padding[0] + kh * o.dilation[0];
          const int64_t column = at[3] * o.stride[1] - o.padding[1] + kw * o.dilation[1];
          if (row < 0 || row >= x[2] || column < 0 || column >= x[3]) continue;
          fn(position(x, {at[0], group * group_in + c, row, column}),
             position(weight, {at[1], c, kh, kw}), position(out, at));
        }
      }
    }
  });
}

// The same of volumes.
template <class Fn>
void for_each_product(const Shape& x, const Shape& weight, const Shape& out, const Conv3dOptions& o,
                      Fn&& fn) {
  const int64_t group_out = weight[0] / o.groups;
  reference::for_each_index(out, [&](const Shape& at) {
    reference::for_each_index(
        Shape{weight[1], weight[2], weight[3], weight[4]}, [&](const Shape& tap) {
          Shape from = {at[0], at[1] / group_out * weight[1] + tap[0], 0, 0, 0};
          for (int i = 0; i < 3; ++i) {
            const auto k = static_cast<size_t>(i);
            from[i + 2] = at[i + 2] * o.stride[k] - o.padding[k] + tap[i + 1] * o.dilation[k];
            if (from[i + 2] < 0 || from[i + 2] >= x[i + 2]) return;
          }
          fn(position(x, from), position(weight, {at[1], tap[0], tap[1], tap[2], tap[3]}),
             position(out, at));
        });
  });
}

template <class Options>
Shape output_shape(const Shape& in, const Shape& kernel, const Options& options) {
  Shape out = {in[0], kernel[0]};
  for (size_t i = 0; i < options.stride.size(); ++i) {
    const int d = static_cast<int>(i) + 2;
    out.push_back(conv_output_size(in[d], kernel[d], options.stride[i], options.padding[i],
                                   options.dilation[i]));
  }
  return out;
}

template <class Options>
std::vector<double> convolved(Tensor x, Tensor weight, const HostHandle* bias,
                              const Options& options) {
  const Shape& kernel = weight->shape();
  const Shape shape = output_shape(x->shape(), kernel, options);
  const std::vector<double> inputs = read<double>(x);
  const std::vector<double> weights = read<double>(weight);
  std::vector<double> out(static_cast<size_t>(shape.numel()), 0.0);
  if (bias != nullptr) {
    const std::vector<double> added = read<double>(*bias);
    const size_t plane = out.size() / std::max<size_t>(1, added.size()) /
                         static_cast<size_t>(std::max<int64_t>(1, shape[0]));
    for (size_t i = 0; i < out.size(); ++i) out[i] = added[i / plane % added.size()];
  }
  for_each_product(x->shape(), kernel, shape, options,
                   [&](size_t i, size_t w, size_t o) { out[o] += inputs[i] * weights[w]; });
  return out;
}

template <class Options>
HostHandle input_grad(Tensor weight, Tensor g, const Shape& x_shape, const Options& options) {
  const std::vector<double> weights = read<double>(weight);
  const std::vector<double> grads = read<double>(g);
  std::vector<double> out(static_cast<size_t>(x_shape.numel()), 0.0);
  for_each_product(x_shape, weight->shape(), g->shape(), options,
                   [&](size_t i, size_t w, size_t o) { out[i] += grads[o] * weights[w]; });
  return make(x_shape, g->dtype(), g->device(), out);
}

template <class Options>
HostHandle weight_grad(Tensor x, Tensor g, const Shape& weight_shape, const Options& options) {
  const std::vector<double> inputs = read<double>(x);
  const std::vector<double> grads = read<double>(g);
  std::vector<double> out(static_cast<size_t>(weight_shape.numel()), 0.0);
  for_each_product(x->shape(), weight_shape, g->shape(), options,
                   [&](size_t i, size_t w, size_t o) { out[w] += grads[o] * inputs[i]; });
  return make(weight_shape, g->dtype(), g->device(), out);
}

}  // namespace

HostHandle Ops::float_conv2d(Tensor x, Tensor weight, const HostHandle* bias,
                             const ConvOptions& options) {
  const Shape shape = output_shape(x->shape(), weight->shape(), options);
  return make(shape, x->dtype(), x->device(), convolved(x, weight, bias, options));
}

HostHandle Ops::float_conv2d_activation(Tensor x, Tensor weight, const HostHandle* bias,
                                        const HostHandle* residual, Activation activation,
                                        const ConvOptions& options) {
  std::vector<double> out = convolved(x, weight, bias, options);
  if (residual != nullptr) {
    const std::vector<double> added = read<double>(*residual);
    for (size_t i = 0; i < out.size(); ++i) out[i] += added[i];
  }
  for (double& y : out) y = reference::activated(y, activation);
  const Shape shape = output_shape(x->shape(), weight->shape(), options);
  return make(shape, x->dtype(), x->device(), out);
}

HostHandle Ops::float_separable_block(Tensor x, const HostHandle* expand,
                                      const HostHandle* expand_bias, Activation expanded,
                                      Tensor weight, const HostHandle* bias, Activation activation,
                                      const HostHandle* project, const HostHandle* project_bias,
                                      const HostHandle* residual, Activation projected,
                                      const ConvOptions& options) {
  HostHandle out = x.get();
  if (expand != nullptr) {
    out = float_conv2d_activation(out, *expand, expand_bias, nullptr, expanded, ConvOptions{});
  }
  out = float_conv2d_activation(out, weight, bias, nullptr, activation, options);
  if (project == nullptr) return out;
  return float_conv2d_activation(out, *project, project_bias, residual, projected, ConvOptions{});
}

HostHandle Ops::float_conv2d_input_grad(Tensor weight, Tensor g, const Shape& x_shape,
                                        const ConvOptions& options) {
  return input_grad(weight, g, x_shape, options);
}
HostHandle Ops::float_conv2d_weight_grad(Tensor x, Tensor g, const Shape& weight_shape,
                                         const ConvOptions& options) {
  return weight_grad(x, g, weight_shape, options);
}

HostHandle Ops::float_conv_transpose2d(Tensor x, Tensor weight, const HostHandle* bias,
                                       Activation activation, const Shape& shape,
                                       const ConvOptions& options) {
  const std::vector<double> biases = bias == nullptr
                                         ? std::vector<double>(static_cast<size_t>(shape[1]), 0.0)
                                         : read<double>(*bias);
  const std::vector<double> weights = read<double>(weight), inputs = read<double>(x);
  std::vector<double> out(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = biases[i / static_cast<size_t>(shape[2] * shape[3]) % biases.size()];
  }
  for_each_product(shape, weight->shape(), x->shape(), options,
                   [&](size_t i, size_t w, size_t o) { out[i] += inputs[o] * weights[w]; });
  for (double& y : out) y = reference::activated(y, activation);
  return make(shape, x->dtype(), x->device(), out);
}

HostHandle Ops::float_conv3d(Tensor x, Tensor weight, const HostHandle* bias,
                             const Conv3dOptions& options) {
  const Shape shape = output_shape(x->shape(), weight->shape(), options);
  return make(shape, x->dtype(), x->device(), convolved(x, weight, bias, options));
}
HostHandle Ops::float_conv3d_input_grad(Tensor weight, Tensor g, const Shape& x_shape,
                                        const Conv3dOptions& options) {
  return input_grad(weight, g, x_shape, options);
}
HostHandle Ops::float_conv3d_weight_grad(Tensor x, Tensor g, const Shape& weight_shape,
                                         const Conv3dOptions& options) {
  return weight_grad(x, g, weight_shape, options);
}

}  // namespace kiln
