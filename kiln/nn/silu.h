// SiLU: x sigmoid(x) (Elfwing et al., 2017).
#pragma once

#include <string>

#include "kiln/nn/layer.h"
#include "kiln/tensor/ops.h"

namespace kiln::nn {

struct SiLUConfig {
  bool inplace = false;
  KILN_CONFIG(SiLUConfig, inplace)
};

// With `inplace`, x itself is changed and returned.
class SiLU : public Layer<SiLUConfig> {
 public:
  explicit SiLU(bool inplace = false) : SiLU(SiLUConfig{inplace}) {}
  explicit SiLU(SiLUConfig config) : Layer(config) {}
  KILN_MODULE_DECLARED(SiLU)

  Tensor forward(TensorArg x) const {
    if (!config_.inplace) return silu(x);
    Tensor out = x;
    out.silu_();
    return out;
  }
  std::string extra_repr() const override { return config_.inplace ? "inplace=True" : ""; }
};

}  // namespace kiln::nn
