#include "kiln/nn/max_pool2d.h"

#include "kiln/core/error.h"
#include "kiln/nn/repr.h"

namespace kiln::nn {

MaxPool2d::MaxPool2d(Size2d kernel_size, const MaxPool2dOptions& options)
    : kernel_size_(kernel_size), options_(options) {
  if (!options_.stride) options_.stride = kernel_size;
  pool_.kernel = kernel_size_;
  pool_.stride = *options_.stride;
  pool_.padding = options_.padding;
  pool_.dilation = options_.dilation;
  pool_.ceil_mode = options_.ceil_mode;
}

std::string MaxPool2d::extra_repr() const {
  using detail::repr;
  return concat("kernel_size=", repr(kernel_size_), ", stride=", repr(*options_.stride),
                ", padding=", repr(options_.padding), ", dilation=", repr(options_.dilation),
                ", ceil_mode=", repr(options_.ceil_mode));
}

}  // namespace kiln::nn
