// Windows that move over the dims behind the channels: convolutions and pools. Internal to
// kiln/onnx.
#pragma once

#include "kiln/onnx/read/call.h"

namespace kiln::onnx {

struct Window {
  int dims = 0;
  Shape kernel, stride, dilation, before, after;
};

// Number d of an option, which is absent or has one for each dim.
int64_t option(Call& c, const std::vector<int64_t>& all, int d, int64_t otherwise);
// By the node's attributes, for this input and kernel.
Window window_of(Call& c, const Tensor& x, const std::vector<int64_t>& kernel);
// Pads on the far side that make ceil_mode's windows whole; they begin within the padded input.
Window with_ceil(Call& c, const Tensor& x, Window w);
Tensor padded(const Tensor& x, const Window& w, double value);
std::vector<int64_t> behind_channels(const Tensor& weight);

Tensor convolve(Call& c, const Tensor& input, const Tensor& weight, const Tensor& bias);
// The sum over each window of each channel; x has its pads already.
Tensor window_sums(const Tensor& x, const Window& w);

}  // namespace kiln::onnx
