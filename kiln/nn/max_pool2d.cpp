#include "kiln/nn/max_pool2d.h"

#include "kiln/core/error.h"
#include "kiln/nn/repr.h"

namespace kiln::nn {

MaxPool2d::MaxPool2d(MaxPool2dConfig config) : Layer(std::move(config)) {
  if (!config_.options.stride) config_.options.stride = config_.kernel_size.value();
}

PoolOptions MaxPool2d::pool() const {
  const MaxPool2dOptions& options = config_.options;
  PoolOptions pool;
  pool.kernel = config_.kernel_size.value();
  pool.stride = options.stride.value_or(config_.kernel_size.value());
  pool.padding = options.padding;
  pool.dilation = options.dilation;
  pool.ceil_mode = options.ceil_mode;
  return pool;
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
