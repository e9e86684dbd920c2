// Convolutions and transposed convolutions over one, two and three spatial dims.
#pragma once

#include "kiln/backend/options.h"
#include "kiln/tensor/nn/sizes.h"
#include "kiln/tensor/tensor.h"

namespace kiln::functional {

// x [N, C, L] or [C, L], weight [O, C / groups, K], bias [O] or undefined -> [N, O, L'] (without N
// where x has none), L' = (L + padding - dilation (K - 1) - 1) / stride + 1, where `padding` counts
// both sides. conv2d and conv3d have H, W and D, H, W in place of L. Throws ShapeError, DTypeError,
// DeviceError, ValueError; `same` needs stride 1.
Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
              const Sizes& stride = 1, const Padding& padding = 0, const Sizes& dilation = 1,
              int64_t groups = 1);
Tensor conv2d(TensorArg x, const Tensor& weight, const Tensor& bias = {}, const Sizes& stride = 1,
              const Padding& padding = 0, const Sizes& dilation = 1, int64_t groups = 1);
Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
              const Sizes& stride = 1, const Padding& padding = 0, const Sizes& dilation = 1,
              int64_t groups = 1);

// y = activation(conv(x) + residual), computed while y is in the cache, for inference most of all;
// the numbers are those of the ops one after another. residual, where it is defined, has y's shape
// and dtype (ShapeError, DTypeError).
struct ConvEpilogue {
  Activation activation = Activation::none;
  Tensor residual = {};
};
Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Sizes& stride,
              const Padding& padding, const Sizes& dilation, int64_t groups,
              const ConvEpilogue& epilogue);
Tensor conv2d(TensorArg x, const Tensor& weight, const Tensor& bias, const Sizes& stride,
              const Padding& padding, const Sizes& dilation, int64_t groups,
              const ConvEpilogue& epilogue);

// The gradient of a convolution with respect to its input, as a layer: x [N, C, L] or [C, L],
// weight [C, O / groups, K], bias [O] or undefined -> [N, O, L'],
//   L' = (L - 1) stride - 2 padding + dilation (K - 1) + output_padding + 1.
// output_padding must be smaller than stride or dilation. The activation is applied to the result,
// by the op itself over one and two dims; the numbers are those of the ops one after another.
Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                        const Sizes& stride = 1, const Sizes& padding = 0,
                        const Sizes& output_padding = 0, int64_t groups = 1,
                        const Sizes& dilation = 1, Activation activation = Activation::none);
Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                        const Sizes& stride = 1, const Sizes& padding = 0,
                        const Sizes& output_padding = 0, int64_t groups = 1,
                        const Sizes& dilation = 1, Activation activation = Activation::none);
Tensor conv_transpose3d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                        const Sizes& stride = 1, const Sizes& padding = 0,
                        const Sizes& output_padding = 0, int64_t groups = 1,
                        const Sizes& dilation = 1, Activation activation = Activation::none);

// Deformable convolution (Zhu et al., 2018; version 1, Dai et al., 2017, without a mask): each
// element of the kernel reads x where its offset moves it to, by bilinear interpolation, zero
// outside. x [N, C, H, W], offset [N, 2 G KH KW, OH, OW] of (dy, dx) pairs, weight
// [O, C / groups, KH, KW], bias [O] or undefined, mask [N, G KH KW, OH, OW] or undefined
// -> [N, O, OH, OW]; the number of offset groups G and of weight groups follow from the shapes.
Tensor deform_conv2d(const Tensor& x, const Tensor& offset, const Tensor& weight,
                     const Tensor& bias = {}, const Sizes& stride = 1, const Sizes& padding = 0,
                     const Sizes& dilation = 1, const Tensor& mask = {});

}  // namespace kiln::functional
