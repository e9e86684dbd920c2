// MaxPool2d: the largest value of each window.
#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "kiln/nn/layer.h"
#include "kiln/nn/size2d.h"
#include "kiln/tensor/ops.h"

namespace kiln::nn {

struct MaxPool2dOptions {
  OptionalField<Size2d> stride = {};  // default: the kernel's size
  Size2d padding = 0;                 // of minus infinity; at most half the kernel
  Size2d dilation = 1;
  bool return_indices = false;  // forward also gives the positions of the maxima
  bool ceil_mode = false;       // windows may hang over the edge
  KILN_CONFIG(MaxPool2dOptions, doc(stride, "null: the kernel's size"),
              doc(padding, "minus infinity on each side"), dilation,
              doc(return_indices, "gives the positions of the maxima too"), ceil_mode)
};

class MaxPool2d;
struct MaxPool2dConfig {
  Required<Size2d> kernel_size = {};
  MaxPool2dOptions options = {};
  KILN_CONFIG(MaxPool2dConfig, kernel_size, options)
  MaxPool2d init() const;
};

// x [N, C, H, W] or [C, H, W] -> [N, C, OH, OW].
class MaxPool2d : public Layer<MaxPool2dConfig> {
 public:
  explicit MaxPool2d(Size2d kernel_size, const MaxPool2dOptions& options = {})
      : MaxPool2d(MaxPool2dConfig{kernel_size, options}) {}
  template <std::integral T, size_t kCount>
    requires(kCount == 2)
  explicit MaxPool2d(const T (&kernel_size)[kCount], const MaxPool2dOptions& options = {})
      : MaxPool2d(Size2d(kernel_size[0], kernel_size[1]), options) {}
  explicit MaxPool2d(detail::OneSize kernel_size, const MaxPool2dOptions& options = {})
      : MaxPool2d(Size2d(detail::size_of(kernel_size)), options) {}
  explicit MaxPool2d(detail::NoSize) = delete;
  explicit MaxPool2d(MaxPool2dConfig config);
  KILN_MODULE_DECLARED(MaxPool2d)

  Tensor forward(TensorArg x) const;
  // Also the positions of the maxima in the flattened H x W plane.
  std::pair<Tensor, Tensor> forward_with_indices(TensorArg x) const;
  std::string extra_repr() const override;
};

inline MaxPool2d MaxPool2dConfig::init() const { return MaxPool2d(*this); }

}  // namespace kiln::nn
