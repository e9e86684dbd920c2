// AvgPool2d: the mean of each window.
#pragma once

#include <optional>
#include <string>

#include "kiln/core/config.h"
#include "kiln/nn/module.h"
#include "kiln/nn/size2d.h"
#include "kiln/tensor/ops.h"

namespace kiln::nn {

struct AvgPool2dOptions {
  std::optional<Size2d> stride = {};  // default: the kernel's size
  Size2d padding = 0;                 // of zeros; at most half the kernel
  bool ceil_mode = false;             // windows may hang over the edge
  bool count_include_pad = true;      // the padding's zeros count in the mean
  KILN_CONFIG(AvgPool2dOptions, doc(stride, "null: the kernel's size"),
              doc(padding, "zeros on each side"), ceil_mode, count_include_pad)
};

// x [N, C, H, W] or [C, H, W] -> [N, C, OH, OW].
class AvgPool2d : public Module {
 public:
  explicit AvgPool2d(Size2d kernel_size, const AvgPool2dOptions& options = {});
  KILN_MODULE(AvgPool2d)

  Tensor forward(TensorArg x) const { return functional::avg_pool2d(x, pool_); }
  std::string extra_repr() const override;

 private:
  Size2d kernel_size_;
  AvgPool2dOptions options_;
  PoolOptions pool_;
};

}  // namespace kiln::nn
