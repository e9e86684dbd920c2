#include "kiln/nn/avg_pool2d.h"

#include "kiln/core/error.h"
#include "kiln/nn/repr.h"

namespace kiln::nn {

AvgPool2d::AvgPool2d(Size2d kernel_size, const AvgPool2dOptions& options)
    : kernel_size_(kernel_size), options_(options) {
  if (!options_.stride) options_.stride = kernel_size;
  pool_.kernel = kernel_size_;
  pool_.stride = *options_.stride;
  pool_.padding = options_.padding;
  pool_.ceil_mode = options_.ceil_mode;
  pool_.count_include_pad = options_.count_include_pad;
}

std::string AvgPool2d::extra_repr() const {
  using detail::repr;
  return concat("kernel_size=", repr(kernel_size_), ", stride=", repr(*options_.stride),
                ", padding=", repr(options_.padding));
}

}  // namespace kiln::nn
