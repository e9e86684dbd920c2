// FractionalMaxPool2d, FractionalMaxPool3d: max pooling whose windows begin at pseudo-random steps.
#pragma once

#include <string>

#include "kiln/nn/module.h"
#include "kiln/tensor/fractional_pooling.h"

namespace kiln::nn {

// x [N, C, H, W] or [C, H, W] -> the same with spatial sizes output_size, or output_ratio of x's.
// Throws ValueError unless one of the two is given.
class FractionalMaxPool2d : public Module {
 public:
  using Options = functional::FractionalPoolOptions;
  FractionalMaxPool2d(const Sizes& kernel_size, Options options);
  KILN_MODULE(FractionalMaxPool2d)

  Tensor forward(TensorArg x) const {
    return functional::fractional_max_pool2d(x.get(), kernel_size_, options_);
  }
  std::string extra_repr() const override;

 private:
  Sizes kernel_size_;
  Options options_;
};

// x [N, C, D, H, W] or [C, D, H, W]; else as FractionalMaxPool2d.
class FractionalMaxPool3d : public Module {
 public:
  using Options = functional::FractionalPoolOptions;
  FractionalMaxPool3d(const Sizes& kernel_size, Options options);
  KILN_MODULE(FractionalMaxPool3d)

  Tensor forward(TensorArg x) const {
    return functional::fractional_max_pool3d(x.get(), kernel_size_, options_);
  }
  std::string extra_repr() const override;

 private:
  Sizes kernel_size_;
  Options options_;
};

}  // namespace kiln::nn
