// FractionalMaxPool2d, FractionalMaxPool3d: max pooling whose windows begin at pseudo-random steps.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kiln/nn/layer.h"
#include "kiln/tensor/nn/fractional_pooling.h"

namespace kiln::nn {

// Of both classes, under PyTorch's names; functional::FractionalPoolOptions says more.
struct FractionalMaxPoolConfig {
  Sizes kernel_size = 1;
  OptionalField<Sizes> output_size = {};
  std::vector<double> output_ratio = {};
  bool return_indices = false;  // what Python's forward gives
  Tensor _random_samples = {};  // undefined: drawn anew in each call
  KILN_CONFIG(FractionalMaxPoolConfig, kernel_size, output_size, output_ratio, return_indices,
              _random_samples)
};

// x [N, C, H, W] or [C, H, W] -> the same with spatial sizes output_size, or output_ratio of x's.
// Throws ValueError unless one of the two is given.
class FractionalMaxPool2d : public Layer<FractionalMaxPoolConfig> {
 public:
  using Options = functional::FractionalPoolOptions;
  FractionalMaxPool2d(const Sizes& kernel_size, Options options);
  explicit FractionalMaxPool2d(FractionalMaxPoolConfig config);

  Buffer _random_samples;  // [N, C, 2], or undefined
  KILN_MODULE_DECLARED(FractionalMaxPool2d)

  Tensor forward(TensorArg x) const { return forward_with_indices(x).first; }
  // Also the positions of the maxima in the flattened spatial dims.
  std::pair<Tensor, Tensor> forward_with_indices(TensorArg x) const;
};

// x [N, C, D, H, W] or [C, D, H, W]; else as FractionalMaxPool2d.
class FractionalMaxPool3d : public Layer<FractionalMaxPoolConfig> {
 public:
  using Options = functional::FractionalPoolOptions;
  FractionalMaxPool3d(const Sizes& kernel_size, Options options);
  explicit FractionalMaxPool3d(FractionalMaxPoolConfig config);

  Buffer _random_samples;  // [N, C, 3], or undefined
  KILN_MODULE_DECLARED(FractionalMaxPool3d)

  Tensor forward(TensorArg x) const { return forward_with_indices(x).first; }
  std::pair<Tensor, Tensor> forward_with_indices(TensorArg x) const;
};

}  // namespace kiln::nn
