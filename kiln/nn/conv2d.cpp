#include "kiln/nn/conv2d.h"

#include <cmath>

#include "kiln/core/error.h"
#include "kiln/nn/init.h"
#include "kiln/nn/repr.h"

namespace kiln::nn {
namespace {

void fill_weight(Tensor& x) { init::kaiming_uniform_(x, std::sqrt(5.0)); }

std::function<void(Tensor&)> fill_bias(const Shape& weight) {
  const int64_t fan_in = init::calculate_fan(weight).fan_in;
  const double bound = fan_in > 0 ? 1.0 / std::sqrt(static_cast<double>(fan_in)) : 0.0;
  return [bound](Tensor& x) { init::uniform_(x, -bound, bound); };
}

void check_sizes(const char* what, const Size2d& sizes, int64_t least) {
  if (sizes.height() < least || sizes.width() < least) {
    throw_error<ValueError>("Conv2d: ", what, " must be at least ", least, "; got ",
                            detail::repr_pair(sizes));
  }
}

}  // namespace

Conv2d::Conv2d(int64_t in_channels, int64_t out_channels, Size2d kernel_size,
               const Conv2dOptions& options, const ParamOptions& param_options)
    : in_channels_(in_channels),
      out_channels_(out_channels),
      kernel_size_(kernel_size),
      options_(options),
      conv_{options.stride, options.padding, options.dilation, options.groups} {
  if (in_channels < 1 || out_channels < 1) {
    throw_error<ValueError>("Conv2d: channels must be at least 1; got ", in_channels, " in and ",
                            out_channels, " out");
  }
  if (options.groups < 1 || in_channels % options.groups != 0 ||
      out_channels % options.groups != 0) {
    throw_error<ValueError>("Conv2d: groups must divide in_channels and out_channels; got groups ",
                            options.groups, ", in_channels ", in_channels, ", out_channels ",
                            out_channels);
  }
  check_sizes("kernel_size", kernel_size, 1);
  check_sizes("stride", options.stride, 1);
  check_sizes("padding", options.padding, 0);
  check_sizes("dilation", options.dilation, 1);
  const Shape shape = {out_channels, in_channels / options.groups, kernel_size.height(),
                       kernel_size.width()};
  weight = parameter(shape, fill_weight, param_options);
  if (options.bias) bias = parameter({out_channels}, fill_bias(shape), param_options);
}

void Conv2d::reset_parameters() {
  refill(weight, fill_weight);
  refill(bias, fill_bias(weight.lazy_shape()));
}

std::string Conv2d::extra_repr() const {
  using detail::repr_pair;
  std::string out =
      concat(in_channels_, ", ", out_channels_, ", kernel_size=", repr_pair(kernel_size_),
             ", stride=", repr_pair(options_.stride));
  if (options_.padding != Size2d(0)) out += ", padding=" + repr_pair(options_.padding);
  if (options_.dilation != Size2d(1)) out += ", dilation=" + repr_pair(options_.dilation);
  if (options_.groups != 1) out += concat(", groups=", options_.groups);
  if (!bias.defined()) out += ", bias=False";
  return out;
}

}  // namespace kiln::nn
