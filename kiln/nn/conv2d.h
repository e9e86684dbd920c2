// Conv2d: two-dimensional convolution (cross-correlation).
#pragma once

#include <concepts>
#include <string>

#include "kiln/nn/layer.h"
#include "kiln/nn/parametrization.h"
#include "kiln/nn/size2d.h"
#include "kiln/tensor/nn/convolution.h"
#include "kiln/tensor/ops.h"

namespace kiln::nn {

// Zeros on each side: a number, two numbers, "same" (the result has the input's size, for stride 1)
// or "valid" (none). Throws ValueError for another word.
class Padding2d {
 public:
  Padding2d() : sizes_(0) {}
  template <std::integral T>
  Padding2d(T both) : sizes_(both) {}
  Padding2d(int64_t height, int64_t width) : sizes_(height, width) {}
  Padding2d(const Size2d& sizes) : sizes_(sizes) {}
  Padding2d(std::string word);
  Padding2d(const char* word) : Padding2d(std::string(word)) {}

  const Size2d& sizes() const { return sizes_; }     // zero for a word
  const std::string& word() const { return word_; }  // empty for numbers
  friend bool operator==(const Padding2d&, const Padding2d&) = default;

 private:
  Size2d sizes_;
  std::string word_;
};
Json to_config_json(const Padding2d& padding);
bool from_config_json(const Json& json, Padding2d& padding);
inline std::string config_type(const Padding2d&) {
  return "integer or [height, width], \"same\" or \"valid\"";
}

struct Conv2dOptions {
  Size2d stride = 1;
  Padding2d padding = 0;
  Size2d dilation = 1;
  int64_t groups = 1;  // divides both numbers of channels
  bool bias = true;
  std::string padding_mode = "zeros";  // or reflect, replicate, circular
  KILN_CONFIG(Conv2dOptions, stride, doc(padding, "zeros on each side"), dilation,
              doc(groups, "divides both numbers of channels"), bias,
              doc(padding_mode, "zeros, reflect, replicate or circular"))
};

class Conv2d;
struct Conv2dConfig {
  Required<int64_t> in_channels = {};
  Required<int64_t> out_channels = {};
  Required<Size2d> kernel_size = {};
  Conv2dOptions options = {};
  KILN_CONFIG(Conv2dConfig, in_channels, out_channels, kernel_size, options)
  Conv2d init(const ParamOptions& param_options = {}) const;
};

// x [N, C, H, W] or [C, H, W] -> [N, O, OH, OW], OH = (H + 2 padding - dilation (K - 1) - 1) /
// stride + 1. weight [O, C / groups, KH, KW] and bias [O] start uniform within 1 / sqrt(C / groups
// KH KW).
//   Conv2d conv{1, 32, 3, {.padding = 1}};
class Conv2d : public Layer<Conv2dConfig> {
 public:
  Conv2d(int64_t in_channels, int64_t out_channels, Size2d kernel_size,
         const Conv2dOptions& options = {}, const ParamOptions& param_options = {})
      : Conv2d(Conv2dConfig{in_channels, out_channels, kernel_size, options}, param_options) {}
  explicit Conv2d(Conv2dConfig config, const ParamOptions& param_options = {});

  Param<Tensor> weight;
  Param<Tensor> bias;
  KILN_MODULE_DECLARED(Conv2d)

  Tensor forward(TensorArg x) const;
  // activation(conv(x) + residual) in one go: conv(x, {.activation = Activation::relu}).
  Tensor forward(TensorArg x, const functional::ConvEpilogue& epilogue) const;
  void reset_parameters();
  std::string extra_repr() const override;

  int64_t in_channels() const { return config_.in_channels; }
  int64_t out_channels() const { return config_.out_channels; }
  Size2d kernel_size() const { return config_.kernel_size; }
  const Conv2dOptions& options() const { return config_.options; }
};

inline Conv2d Conv2dConfig::init(const ParamOptions& param_options) const {
  return Conv2d(*this, param_options);
}

}  // namespace kiln::nn
