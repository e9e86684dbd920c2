// AvgPool2d: the mean of each window.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "kiln/nn/layer.h"
#include "kiln/nn/size2d.h"
#include "kiln/tensor/ops.h"

namespace kiln::nn {

struct AvgPool2dOptions {
  OptionalField<Size2d> stride = {};             // default: the kernel's size
  Size2d padding = 0;                            // of zeros; at most half the kernel
  bool ceil_mode = false;                        // windows may hang over the edge
  bool count_include_pad = true;                 // the padding's zeros count in the mean
  std::optional<int64_t> divisor_override = {};  // what sums are divided by; default: their count
  KILN_CONFIG(AvgPool2dOptions, doc(stride, "null: the kernel's size"),
              doc(padding, "zeros on each side"), ceil_mode, count_include_pad,
              doc(divisor_override, "null: the numbers that count"))
};

class AvgPool2d;
struct AvgPool2dConfig {
  Required<Size2d> kernel_size = {};
  AvgPool2dOptions options = {};
  KILN_CONFIG(AvgPool2dConfig, kernel_size, options)
  AvgPool2d init() const;
};

// x [N, C, H, W] or [C, H, W] -> [N, C, OH, OW].
class AvgPool2d : public Layer<AvgPool2dConfig> {
 public:
  explicit AvgPool2d(Size2d kernel_size, const AvgPool2dOptions& options = {})
      : AvgPool2d(AvgPool2dConfig{kernel_size, options}) {}
  template <std::integral T, size_t kCount>
    requires(kCount == 2)
  explicit AvgPool2d(const T (&kernel_size)[kCount], const AvgPool2dOptions& options = {})
      : AvgPool2d(Size2d(kernel_size[0], kernel_size[1]), options) {}
  explicit AvgPool2d(detail::OneSize kernel_size, const AvgPool2dOptions& options = {})
      : AvgPool2d(Size2d(detail::size_of(kernel_size)), options) {}
  explicit AvgPool2d(detail::NoSize) = delete;
  explicit AvgPool2d(AvgPool2dConfig config);
  KILN_MODULE_DECLARED(AvgPool2d)

  Tensor forward(TensorArg x) const;
  std::string extra_repr() const override;
};

inline AvgPool2d AvgPool2dConfig::init() const { return AvgPool2d(*this); }

}  // namespace kiln::nn
