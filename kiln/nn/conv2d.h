// Conv2d: two-dimensional convolution (cross-correlation).
#pragma once

#include <string>

#include "kiln/core/config.h"
#include "kiln/nn/module.h"
#include "kiln/nn/parametrization.h"
#include "kiln/nn/size2d.h"
#include "kiln/tensor/ops.h"

namespace kiln::nn {

struct Conv2dOptions {
  Size2d stride = 1;
  Size2d padding = 0;  // zeros on each side
  Size2d dilation = 1;
  int64_t groups = 1;  // divides both numbers of channels
  bool bias = true;
  KILN_CONFIG(Conv2dOptions, stride, doc(padding, "zeros on each side"), dilation,
              doc(groups, "divides both numbers of channels"), bias)
};

// x [N, C, H, W] or [C, H, W] -> [N, O, OH, OW], OH = (H + 2 padding - dilation (K - 1) - 1) /
// stride + 1. weight [O, C / groups, KH, KW] and bias [O] start uniform within 1 / sqrt(C / groups
// KH KW).
//   Conv2d conv{1, 32, 3, {.padding = 1}};
class Conv2d : public Module {
 public:
  Conv2d(int64_t in_channels, int64_t out_channels, Size2d kernel_size,
         const Conv2dOptions& options = {}, const ParamOptions& param_options = {});

  Param<Tensor> weight;
  Param<Tensor> bias;
  KILN_MODULE(Conv2d, weight, bias)

  Tensor forward(TensorArg x) const {
    if (weight.is_computed()) [[unlikely]]
      return detail::computed_conv2d(weight, x, bias, conv_);
    const Tensor& w = weight;  // drawn before the bias, as in parameters(), should both be lazy
    return functional::conv2d(x, w, bias, conv_);
  }
  void reset_parameters();
  std::string extra_repr() const override;

  int64_t in_channels() const { return in_channels_; }
  int64_t out_channels() const { return out_channels_; }
  Size2d kernel_size() const { return kernel_size_; }
  const Conv2dOptions& options() const { return options_; }

 private:
  int64_t in_channels_;
  int64_t out_channels_;
  Size2d kernel_size_;
  Conv2dOptions options_;
  ConvOptions conv_;
};

}  // namespace kiln::nn
