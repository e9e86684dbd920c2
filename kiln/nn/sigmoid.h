// Sigmoid: 1 / (1 + e^-x).
#pragma once

#include "kiln/nn/layer.h"
#include "kiln/tensor/ops.h"

namespace kiln::nn {

struct SigmoidConfig {
  KILN_CONFIG(SigmoidConfig)
};

class Sigmoid : public Layer<SigmoidConfig> {
 public:
  explicit Sigmoid(SigmoidConfig config = {}) : Layer(config) {}
  KILN_MODULE_DECLARED(Sigmoid)
  Tensor forward(TensorArg x) const { return sigmoid(x); }
};

}  // namespace kiln::nn
