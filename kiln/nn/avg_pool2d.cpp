#include "kiln/nn/avg_pool2d.h"

#include "kiln/core/error.h"
#include "kiln/nn/repr.h"
#include "kiln/tensor/nn/pooling.h"

namespace kiln::nn {

AvgPool2d::AvgPool2d(AvgPool2dConfig config) : Layer(std::move(config)) {
  if (!config_.options.stride) config_.options.stride = config_.kernel_size.value();
}

Tensor AvgPool2d::forward(TensorArg x) const {
  const AvgPool2dOptions& o = config_.options;
  return functional::avg_pool2d(
      x, Sizes(config_.kernel_size.value()), Sizes(o.stride.value_or(config_.kernel_size.value())),
      Sizes(o.padding), o.ceil_mode, o.count_include_pad, o.divisor_override);
}

std::string AvgPool2d::extra_repr() const {
  using detail::repr;
  const AvgPool2dOptions& options = config_.options;
  return concat("kernel_size=", repr(config_.kernel_size.value()),
                ", stride=", repr(options.stride.value_or(config_.kernel_size.value())),
                ", padding=", repr(options.padding));
}

KILN_MODULE_DEFINED(AvgPool2d)

}  // namespace kiln::nn
