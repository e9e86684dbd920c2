// GELU: Gaussian error linear unit (Hendrycks & Gimpel, 2016).
#pragma once

#include <string>
#include <utility>

#include "kiln/nn/layer.h"
#include "kiln/tensor/ops.h"

namespace kiln::nn {

struct GELUConfig {
  std::string approximate = "none";
  KILN_CONFIG(GELUConfig, doc(approximate, "none or tanh"))
};

// x Phi(x), or with approximate = "tanh" 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))). Throws
// ValueError for any other word than "none" and "tanh".
class GELU : public Layer<GELUConfig> {
 public:
  explicit GELU(GELUConfig config = {});
  KILN_MODULE_DECLARED(GELU)

  Tensor forward(TensorArg x) const { return gelu(x, config_.approximate); }
  std::string extra_repr() const override { return "approximate='" + config_.approximate + "'"; }
};

}  // namespace kiln::nn
