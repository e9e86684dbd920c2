// MaxPool2d: the largest value of each window.
#pragma once

#include <optional>
#include <string>

#include "kiln/core/config.h"
#include "kiln/nn/module.h"
#include "kiln/nn/size2d.h"
#include "kiln/tensor/ops.h"

namespace kiln::nn {

struct MaxPool2dOptions {
  std::optional<Size2d> stride = {};  // default: the kernel's size
  Size2d padding = 0;                 // of minus infinity; at most half the kernel
  Size2d dilation = 1;
  bool ceil_mode = false;  // windows may hang over the edge
  KILN_CONFIG(MaxPool2dOptions, doc(stride, "null: the kernel's size"),
              doc(padding, "minus infinity on each side"), dilation, ceil_mode)
};

// x [N, C, H, W] or [C, H, W] -> [N, C, OH, OW].
class MaxPool2d : public Module {
 public:
  explicit MaxPool2d(Size2d kernel_size, const MaxPool2dOptions& options = {});
  KILN_MODULE(MaxPool2d)

  Tensor forward(TensorArg x) const { return functional::max_pool2d(x, pool_); }
  std::string extra_repr() const override;

 private:
  Size2d kernel_size_;
  MaxPool2dOptions options_;
  PoolOptions pool_;
};

}  // namespace kiln::nn
