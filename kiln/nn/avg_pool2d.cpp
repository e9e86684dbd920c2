#include "kiln/nn/avg_pool2d.h"

#include "kiln/core/error.h"
#include "kiln/nn/repr.h"

namespace kiln::nn {

AvgPool2d::AvgPool2d(AvgPool2dConfig config) : Layer(std::move(config)) {
  if (!config_.options.stride) config_.options.stride = config_.kernel_size.value();
}

PoolOptions AvgPool2d::pool() const {
  const AvgPool2dOptions& options = config_.options;
  PoolOptions pool;
  pool.kernel = config_.kernel_size.value();
  pool.stride = options.stride.value_or(config_.kernel_size.value());
  pool.padding = options.padding;
  pool.ceil_mode = options.ceil_mode;
  pool.count_include_pad = options.count_include_pad;
  return pool;
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
