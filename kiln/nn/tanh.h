// Tanh: (e^x - e^-x) / (e^x + e^-x).
#pragma once

#include "kiln/nn/layer.h"
#include "kiln/tensor/ops.h"

namespace kiln::nn {

struct TanhConfig {
  KILN_CONFIG(TanhConfig)
};

class Tanh : public Layer<TanhConfig> {
 public:
  explicit Tanh(TanhConfig config = {}) : Layer(config) {}
  KILN_MODULE_DECLARED(Tanh)
  Tensor forward(TensorArg x) const { return tanh(x); }
};

}  // namespace kiln::nn
