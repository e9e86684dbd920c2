// ReLU: max(0, x).
#pragma once

#include <string>

#include "kiln/nn/layer.h"
#include "kiln/tensor/ops.h"

namespace kiln::nn {

struct ReLUConfig {
  bool inplace = false;
  KILN_CONFIG(ReLUConfig, inplace)
};

// With `inplace`, x itself is changed and returned.
class ReLU : public Layer<ReLUConfig> {
 public:
  explicit ReLU(bool inplace = false) : ReLU(ReLUConfig{inplace}) {}
  explicit ReLU(ReLUConfig config) : Layer(config) {}
  KILN_MODULE_DECLARED(ReLU)

  Tensor forward(TensorArg x) const {
    if (!config_.inplace) return relu(x);
    Tensor out = x;
    out.relu_();
    return out;
  }
  std::string extra_repr() const override { return config_.inplace ? "inplace=True" : ""; }
};

}  // namespace kiln::nn
