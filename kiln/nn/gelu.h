// GELU: Gaussian error linear unit (Hendrycks & Gimpel, 2016).
#pragma once

#include <string>

#include "kiln/nn/module.h"
#include "kiln/tensor/ops.h"

namespace kiln::nn {

// x Phi(x), or with approximate = "tanh" 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))). Throws
// ValueError for any other word than "none" and "tanh".
class GELU : public Module {
 public:
  explicit GELU(std::string approximate = "none");
  KILN_MODULE(GELU)

  Tensor forward(TensorArg x) const { return gelu(x, approximate_); }
  std::string extra_repr() const override { return "approximate='" + approximate_ + "'"; }

 private:
  std::string approximate_;
};

}  // namespace kiln::nn
