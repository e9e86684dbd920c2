// Depthwise convolutions with those of 1 x 1 around them, the blocks of mobile networks.
#pragma once

#include "kiln/backend/options.h"
#include "kiln/tensor/nn/sizes.h"
#include "kiln/tensor/tensor.h"

namespace kiln::functional {

// A convolution of 1 x 1: weight [O, C, 1, 1], bias [O] or undefined, and what is applied to the
// result. There is none where the weight is undefined.
struct PointwiseConv {
  Tensor weight = {};
  Tensor bias = {};
  Activation activation = Activation::none;
};

struct SeparableConvOptions {
  Activation activation = Activation::none;  // of the depthwise convolution
  PointwiseConv expand = {};                 // before it
  PointwiseConv project = {};                // behind it
  Tensor residual = {};  // of the result's shape: added before project.activation, or undefined
};

// project(depthwise(expand(x))) with x [N, C, H, W] or [C, H, W], weight [C', 1, KH, KW] and bias
// [C'] or undefined, where C' is the number of channels that expand gives, or C. The numbers are
// those of conv2d() one after another, for inference most of all: on a processor a block runs a few
// rows at a time, so that what lies between stays in the cache. Padding is the same on both sides.
// Throws ShapeError, DTypeError, DeviceError; ValueError for a residual without project.
Tensor separable_conv2d(TensorArg x, const Tensor& weight, const Tensor& bias = {},
                        const Sizes& stride = 1, const Sizes& padding = 0,
                        const Sizes& dilation = 1, const SeparableConvOptions& options = {});

}  // namespace kiln::functional
