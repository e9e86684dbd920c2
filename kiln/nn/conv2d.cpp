#include "kiln/nn/conv2d.h"

#include <cmath>

#include "kiln/core/error.h"
#include "kiln/nn/fan_in_init.h"
#include "kiln/nn/padding_nd.h"
#include "kiln/nn/repr.h"

namespace kiln::nn {
namespace {

void check_sizes(const char* what, const Size2d& sizes, int64_t least) {
  if (sizes.height() < least || sizes.width() < least) {
    throw_error<ValueError>("Conv2d: ", what, " must be at least ", least, "; got ",
                            detail::repr_pair(sizes));
  }
}

// As PyTorch's layer keeps and prints them.
void make_pair(Size2d& sizes) { sizes = Size2d(sizes.height(), sizes.width()); }

void check(const Conv2dConfig& config) {
  const int64_t in = config.in_channels, out = config.out_channels;
  const Conv2dOptions& options = config.options;
  if (in < 1 || out < 1) {
    throw_error<ValueError>("Conv2d: channels must be at least 1; got ", in, " in and ", out,
                            " out");
  }
  if (options.groups < 1 || in % options.groups != 0 || out % options.groups != 0) {
    throw_error<ValueError>("Conv2d: groups must divide in_channels and out_channels; got groups ",
                            options.groups, ", in_channels ", in, ", out_channels ", out);
  }
  check_sizes("kernel_size", config.kernel_size, 1);
  check_sizes("stride", options.stride, 1);
  check_sizes("padding", options.padding.sizes(), 0);
  check_sizes("dilation", options.dilation, 1);
  if (options.padding.word() == "same" && options.stride != Size2d(1)) {
    throw_error<ValueError>("Conv2d: padding 'same' needs stride 1; got stride ",
                            detail::repr_pair(options.stride));
  }
  detail::check_padding_mode("Conv2d", options.padding_mode);
}

}  // namespace

Padding2d::Padding2d(std::string word) : sizes_(0), word_(std::move(word)) {
  if (word_ != "same" && word_ != "valid") {
    throw_error<ValueError>("padding: the word is unknown; got '", word_,
                            "'; expected 'same' or 'valid'");
  }
}

Json to_config_json(const Padding2d& padding) {
  if (!padding.word().empty()) return padding.word();
  return to_config_json(padding.sizes());
}

bool from_config_json(const Json& json, Padding2d& padding) {
  if (const std::string* word = json.as<std::string>()) {
    if (*word != "same" && *word != "valid") return false;
    padding = *word;
    return true;
  }
  Size2d sizes;
  if (!from_config_json(json, sizes)) return false;
  padding = sizes;
  return true;
}

Conv2d::Conv2d(Conv2dConfig config, const ParamOptions& param_options) : Layer(std::move(config)) {
  check(config_);
  Conv2dOptions& options = config_.options;
  Size2d kernel = config_.kernel_size;
  make_pair(kernel);
  config_.kernel_size = kernel;
  make_pair(options.stride);
  make_pair(options.dilation);
  if (options.padding.word().empty()) {
    options.padding = Padding2d(options.padding.sizes().height(), options.padding.sizes().width());
  }
  const Shape shape = {out_channels(), in_channels() / options.groups, kernel.height(),
                       kernel.width()};
  weight = parameter(shape, detail::fill_weight, param_options);
  if (options.bias) bias = parameter({out_channels()}, detail::fill_bias(shape), param_options);
}

Tensor Conv2d::forward(TensorArg x) const {
  const Conv2dOptions& o = config_.options;
  if (o.padding_mode != "zeros") [[unlikely]] {
    const Tensor w = weight.val();
    const PaddingNd padding = o.padding.word().empty()
                                  ? PaddingNd{o.padding.sizes().height(), o.padding.sizes().width()}
                                  : PaddingNd(o.padding.word());
    const Shape dilation{o.dilation.height(), o.dilation.width()};
    const Tensor padded =
        detail::padded_by_mode(x.get(), w.shape(), dilation, padding, o.padding_mode);
    return functional::conv2d(padded, w, bias, Sizes(o.stride), 0, Sizes(o.dilation), o.groups);
  }
  if (o.padding.word() == "same") [[unlikely]] {
    const Tensor w =
        weight.val();  // drawn before the bias, as in parameters(), should both be lazy
    return functional::conv2d(x.get(), w, bias, Sizes(o.stride), Padding::Mode::same,
                              Sizes(o.dilation), o.groups);
  }
  const ConvOptions options{o.stride, o.padding.sizes(), o.dilation, o.groups};
  if (weight.is_computed()) [[unlikely]]
    return detail::computed_conv2d(weight, x, bias, options);
  const Tensor& w = weight;
  return detail::conv2d_with(x, w, bias, options);
}

Tensor Conv2d::forward(TensorArg x, const functional::ConvEpilogue& epilogue) const {
  const Conv2dOptions& o = config_.options;
  if (o.padding_mode != "zeros" || !o.padding.word().empty() || weight.is_computed()) [[unlikely]] {
    Tensor y = forward(std::move(x));
    if (epilogue.residual.defined()) y = y + epilogue.residual;
    return functional::activate(std::move(y), epilogue.activation);
  }
  const Tensor& w = weight;
  return functional::conv2d(std::move(x), w, bias, Sizes(o.stride), Sizes(o.padding.sizes()),
                            Sizes(o.dilation), o.groups, epilogue);
}

void Conv2d::reset_parameters() {
  refill(weight, detail::fill_weight);
  refill(bias, detail::fill_bias(weight.lazy_shape()));
}

std::string Conv2d::extra_repr() const {
  using detail::repr_pair;
  const Conv2dOptions& o = config_.options;
  std::string out =
      concat(in_channels(), ", ", out_channels(), ", kernel_size=", repr_pair(kernel_size()),
             ", stride=", repr_pair(o.stride));
  if (!o.padding.word().empty()) {
    out += ", padding=" + o.padding.word();
  } else if (o.padding.sizes() != Size2d(0)) {
    out += ", padding=" + repr_pair(o.padding.sizes());
  }
  if (o.dilation != Size2d(1)) out += ", dilation=" + repr_pair(o.dilation);
  if (o.groups != 1) out += concat(", groups=", o.groups);
  if (!bias.defined()) out += ", bias=False";
  if (o.padding_mode != "zeros") out += ", padding_mode=" + o.padding_mode;
  return out;
}

KILN_MODULE_DEFINED(Conv2d, weight, bias)

}  // namespace kiln::nn
