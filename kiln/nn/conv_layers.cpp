#include "kiln/nn/conv_layers.h"

#include <algorithm>
#include <cmath>

#include "kiln/core/error.h"
#include "kiln/nn/fan_in_init.h"
#include "kiln/nn/repr.h"
#include "kiln/tensor/ops.h"

namespace kiln::nn {

using detail::repr;
namespace F = functional;

namespace {

// As PyTorch's layers keep and print it: one number for each dim.
SizeNd expanded(const char* name, const char* what, const SizeNd& size, int dims, int64_t least) {
  SizeNd out = size.expanded(dims, concat(name, ": ", what));
  for (const int64_t value : out.values()) {
    if (value < least) {
      throw_error<ValueError>(name, ": ", what, " must be at least ", least, "; got ", repr(out));
    }
  }
  return out;
}

void check_channels(const char* name, int64_t in, int64_t out, int64_t groups) {
  if (in < 1 || out < 1) {
    throw_error<ValueError>(name, ": channels must be at least 1; got ", in, " in and ", out,
                            " out");
  }
  if (groups < 1 || in % groups != 0 || out % groups != 0) {
    throw_error<ValueError>(name, ": groups must divide in_channels and out_channels; got groups ",
                            groups, ", in_channels ", in, ", out_channels ", out);
  }
}

Shape weight_shape(int64_t first, int64_t second, const SizeNd& kernel) {
  Shape shape{first, second};
  for (const int64_t size : kernel.values()) shape.push_back(size);
  return shape;
}

std::string common_repr(int64_t in, int64_t out, const SizeNd& kernel, const SizeNd& stride) {
  return concat(in, ", ", out, ", kernel_size=", repr(kernel), ", stride=", repr(stride));
}

}  // namespace

ConvNdLayer::ConvNdLayer(const char* name, int dims, ConvNdConfig config,
                         const ParamOptions& param_options)
    : Layer(std::move(config)), dims_(dims) {
  ConvNdOptions& o = config_.options;
  check_channels(name, in_channels(), out_channels(), o.groups);
  detail::check_padding_mode(name, o.padding_mode);
  config_.kernel_size = expanded(name, "kernel_size", config_.kernel_size, dims, 1);
  o.stride = expanded(name, "stride", o.stride, dims, 1);
  o.dilation = expanded(name, "dilation", o.dilation, dims, 1);
  if (o.padding.word().empty()) o.padding = expanded(name, "padding", o.padding.sizes(), dims, 0);
  if (o.padding.word() == "same" && !o.stride.all(1)) {
    throw_error<ValueError>(name, ": padding 'same' needs stride 1; got stride ", repr(o.stride));
  }
  const Shape shape = weight_shape(out_channels(), in_channels() / o.groups, config_.kernel_size);
  weight = parameter(shape, detail::fill_weight, param_options);
  if (o.bias) bias = parameter({out_channels()}, detail::fill_bias(shape), param_options);
}

Tensor ConvNdLayer::forward(const Tensor& x, const F::ConvEpilogue& epilogue) const {
  const ConvNdOptions& o = config_.options;
  const Tensor w = weight.val();  // drawn before the bias, as in parameters(), should both be lazy
  Padding padding = o.padding.word() == "same"    ? Padding(Padding::Mode::same)
                    : o.padding.word() == "valid" ? Padding(0)
                                                  : Padding(o.padding.sizes().sizes());
  Tensor input = x;
  if (o.padding_mode != "zeros") {
    input = detail::padded_by_mode(x, w.shape(), o.dilation.values(), o.padding, o.padding_mode);
    padding = 0;
  }
  const Sizes stride = o.stride.sizes(), dilation = o.dilation.sizes();
  if (dims_ == 1) {
    return F::conv1d(input, w, bias, stride, padding, dilation, o.groups, epilogue);
  }
  Tensor y = F::conv3d(input, w, bias, stride, padding, dilation, o.groups);
  if (epilogue.residual.defined()) y = y + epilogue.residual;
  return F::activate(std::move(y), epilogue.activation);
}

void ConvNdLayer::reset_parameters() {
  refill(weight, detail::fill_weight);
  refill(bias, detail::fill_bias(weight.lazy_shape()));
}

std::string ConvNdLayer::extra_repr() const {
  const ConvNdOptions& o = config_.options;
  std::string out = common_repr(in_channels(), out_channels(), config_.kernel_size, o.stride);
  if (!o.padding.word().empty()) {
    out += ", padding=" + o.padding.word();
  } else if (!o.padding.sizes().all(0)) {
    out += ", padding=" + repr(o.padding.sizes());
  }
  if (!o.dilation.all(1)) out += ", dilation=" + repr(o.dilation);
  if (o.groups != 1) out += concat(", groups=", o.groups);
  if (!bias.defined()) out += ", bias=False";
  if (o.padding_mode != "zeros") out += ", padding_mode=" + o.padding_mode;
  return out;
}

// ---- Transposed

ConvTransposeLayer::ConvTransposeLayer(const char* name, int dims, ConvTransposeConfig config,
                                       const ParamOptions& param_options)
    : Layer(std::move(config)), name_(name), dims_(dims) {
  ConvTransposeOptions& o = config_.options;
  const int64_t in = config_.in_channels, out = config_.out_channels;
  check_channels(name, in, out, o.groups);
  if (o.padding_mode != "zeros") {
    throw_error<ValueError>(name, ": only padding_mode 'zeros' is legal; got '", o.padding_mode,
                            "'");
  }
  config_.kernel_size = expanded(name, "kernel_size", config_.kernel_size, dims, 1);
  o.stride = expanded(name, "stride", o.stride, dims, 1);
  o.padding = expanded(name, "padding", o.padding, dims, 0);
  o.output_padding = expanded(name, "output_padding", o.output_padding, dims, 0);
  o.dilation = expanded(name, "dilation", o.dilation, dims, 1);
  const Shape shape = weight_shape(in, out / o.groups, config_.kernel_size);
  weight = parameter(shape, detail::fill_weight, param_options);
  if (o.bias) bias = parameter({out}, detail::fill_bias(shape), param_options);
}

Shape ConvTransposeLayer::output_padding(const Tensor& x,
                                         std::span<const int64_t> output_size) const {
  const ConvTransposeOptions& o = config_.options;
  const auto dims = static_cast<size_t>(dims_);
  if (static_cast<int64_t>(output_size.size()) == x.dim() && x.dim() > dims_) {
    output_size = output_size.last(dims);
  }
  const auto fail = [&](const Shape& least, const Shape& most) {
    throw_error<ValueError>(name_, ": output_size cannot be had from shape ", x.shape(), "; got ",
                            Shape(output_size), "; expected from ", least, " to ", most);
  };
  Shape least, most, out;
  for (int i = 0; i < dims_ && x.dim() > dims_; ++i) {
    const int64_t size = x.size(x.dim() - dims_ + i);
    least.push_back((size - 1) * o.stride.values()[i] - 2 * o.padding.values()[i] +
                    o.dilation.values()[i] * (config_.kernel_size.value().values()[i] - 1) + 1);
    most.push_back(least[i] + o.stride.values()[i] - 1);
  }
  if (output_size.size() != dims || least.rank() != dims_) fail(least, most);
  for (int i = 0; i < dims_; ++i) {
    const int64_t wanted = output_size[static_cast<size_t>(i)];
    if (wanted < least[i] || wanted > most[i]) fail(least, most);
    out.push_back(wanted - least[i]);
  }
  return out;
}

Tensor ConvTransposeLayer::forward(const Tensor& x,
                                   const std::optional<std::vector<int64_t>>& output_size,
                                   Activation activation) const {
  const ConvTransposeOptions& o = config_.options;
  const Tensor w = weight.val();
  const Shape more =
      output_size ? output_padding(x, *output_size) : o.output_padding.sizes().values();
  const auto conv = dims_ == 1   ? F::conv_transpose1d
                    : dims_ == 2 ? F::conv_transpose2d
                                 : F::conv_transpose3d;
  return conv(x, w, bias, o.stride.sizes(), o.padding.sizes(), more, o.groups, o.dilation.sizes(),
              activation);
}

void ConvTransposeLayer::reset_parameters() {
  refill(weight, detail::fill_weight);
  refill(bias, detail::fill_bias(weight.lazy_shape()));
}

std::string ConvTransposeLayer::extra_repr() const {
  const ConvTransposeOptions& o = config_.options;
  std::string out =
      common_repr(config_.in_channels, config_.out_channels, config_.kernel_size, o.stride);
  if (!o.padding.all(0)) out += ", padding=" + repr(o.padding);
  if (!o.dilation.all(1)) out += ", dilation=" + repr(o.dilation);
  if (!o.output_padding.all(0)) out += ", output_padding=" + repr(o.output_padding);
  if (o.groups != 1) out += concat(", groups=", o.groups);
  if (!bias.defined()) out += ", bias=False";
  return out;
}

KILN_MODULE_DEFINED(Conv1d, weight, bias)
KILN_MODULE_DEFINED(Conv3d, weight, bias)
KILN_MODULE_DEFINED(ConvTranspose1d, weight, bias)
KILN_MODULE_DEFINED(ConvTranspose2d, weight, bias)
KILN_MODULE_DEFINED(ConvTranspose3d, weight, bias)

}  // namespace kiln::nn
