#include "kiln/nn/max_pool2d.h"

#include "kiln/core/error.h"
#include "kiln/nn/repr.h"
#include "kiln/tensor/nn/pooling.h"

namespace kiln::nn {

MaxPool2d::MaxPool2d(MaxPool2dConfig config) : Layer(std::move(config)) {
  if (!config_.options.stride) config_.options.stride = config_.kernel_size.value();
}

Tensor MaxPool2d::forward(TensorArg x) const {
  const MaxPool2dOptions& o = config_.options;
  return functional::max_pool2d(x, Sizes(config_.kernel_size.value()),
                                Sizes(o.stride.value_or(config_.kernel_size.value())),
                                Sizes(o.padding), Sizes(o.dilation), o.ceil_mode);
}

std::pair<Tensor, Tensor> MaxPool2d::forward_with_indices(TensorArg x) const {
  const MaxPool2dOptions& o = config_.options;
  return functional::max_pool2d_with_indices(x, Sizes(config_.kernel_size.value()),
                                             Sizes(o.stride.value_or(config_.kernel_size.value())),
                                             Sizes(o.padding), Sizes(o.dilation), o.ceil_mode);
}

std::string MaxPool2d::extra_repr() const {
  using detail::repr;
  const MaxPool2dOptions& options = config_.options;
  return concat("kernel_size=", repr(config_.kernel_size.value()),
                ", stride=", repr(options.stride.value_or(config_.kernel_size.value())),
                ", padding=", repr(options.padding), ", dilation=", repr(options.dilation),
                ", ceil_mode=", repr(options.ceil_mode));
}

KILN_MODULE_DEFINED(MaxPool2d)

}  // namespace kiln::nn
